package eddaui

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/ui/page"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/operate"
)

// someMap has a cycle, a message to itself, an endpoint without incoming arrows, and names that would break a page.
func someMap() operate.Map {
	since := time.Date(2026, 11, 26, 14, 0, 0, 0, time.UTC)
	seen := func(from, saga, kind, to string, n int64) operate.Edge {
		return operate.Edge{From: from, Saga: saga, Kind: kind, To: to, Seen: n, PerMinute: float64(n) / 10}
	}
	return operate.Map{
		Messages: 100, Since: since, Until: since.Add(10 * time.Minute),
		Endpoints: []operate.MapEndpoint{
			{Name: "alone", Kinds: []string{"nothing"}}, {Name: "bank", Relay: true, Kinds: []string{"bank.pay"}},
			{Name: `<b>"&`, Kinds: []string{"odd"}}, {Name: "labels", Kinds: []string{"label.print"}},
			{Name: "orders", Kinds: []string{"order.place"}, Sagas: []string{"order", "refund"}},
			{Name: "payments-of-a-very-long-name", Kinds: []string{"payment.charge", "payment.refund"}},
		},
		Edges: []operate.Edge{
			{Kind: "nothing", To: "alone"},
			seen("", "", "order.place", "orders", 40), seen("labels", "", "label.print", "labels", 7),
			seen("orders", "order", "payment.charge", "payments-of-a-very-long-name", 30),
			seen("orders", "refund", "payment.charge", "payments-of-a-very-long-name", 1),
			seen("orders", "refund", "payment.refund", "payments-of-a-very-long-name", 2),
			seen("orders", "order", "bank.pay", "bank", 0), seen("orders", "order", `odd"]`, `<b>"&`, 1),
			seen("payments-of-a-very-long-name", "", "payment.charged", "orders", 30),
			seen("payments-of-a-very-long-name", "", "bank.pay", "bank", 30),
		},
		Faults: []operate.Fault{
			{Endpoint: "labels", Says: "No process runs it."},
			{Endpoint: "orders", Kind: "order.lost", Says: "Its saga order publishes order.lost, to which nobody <b>."},
			{Endpoint: "orders", Kind: "payment.charged", Says: "It does not handle payment.charged."},
		},
	}
}

// same compares a text with a file, or with update writes the file.
func same(t *testing.T, file, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s, %v: go test ./eddaui -update writes it anew; it is\n%s", file, err, got)
	}
}

func TestMapIsDrawn(t *testing.T) {
	t.Parallel()
	l, err := newLook("")
	if err != nil {
		t.Fatal(err)
	}
	f := frame{Root: "../"}
	f.put(page.MapOf(someMap()))
	var whole bytes.Buffer
	if err := l.page(&whole, "map", f); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(whole.String(), `<main id="main">`)
	body, _, _ = strings.Cut(body, "</main>")
	same(t, "testdata/map.html", strings.ReplaceAll(body, "</g>", "</g>\n"), *Update)
	if strings.Contains(body, "<b>") || strings.Contains(body, " style=") {
		t.Error("a name is shown as it came, or a style stands in the page")
	}
	if n := len(regexp.MustCompile(`<a class="node" href="[^"]+"><title>[^<]+</title>`).
		FindAllString(body, -1)); n != 6 {
		t.Errorf("%d endpoints have a link and a name, want 6", n)
	}
	for _, want := range []string{
		`<title>orders, order, refund. Its saga order publishes order.lost, to which nobody &lt;b&gt;. It does`,
		`>2 faults, order, refund</text>`, `<title>bank, relay</title>`, `<rect class="box fault"`,
		`<title>labels, 1 kind. No process runs it.</title>`, `>no process, 1 kind</text>`,
		`sends payment.charged to orders, 3.0 a minute. It does not handle payment.charged."`, `dx="6">dies</tspan>`,
		`>payment.charge +1<tspan`, `>3.3/min</tspan>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the drawing has no %s", want)
		}
	}
	if n := strings.Count(body, `role="img" aria-label="`); n != 6 {
		t.Errorf("%d arrows have a name, want 6", n)
	}
}

func TestMapAsMermaid(t *testing.T) {
	t.Parallel()
	m := someMap()
	same(t, "testdata/map.mmd", view.Map(&m).Mermaid, *Update)
}
