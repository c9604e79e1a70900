package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

var (
	someID   = saga.ID{15: 7}
	someTime = time.Date(2026, 11, 21, 10, 0, 0, 1000, time.UTC)
)

const somePlace = "2026-11-21T10:00:00.000001Z/00000000-0000-0000-0000-000000000007"

func TestObjectsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	o := Object{"z", 1, "a", Object{"y<", "\u202e", "b", []Object{}}}
	text, err := o.Text()
	if want := "{\n  \"z\": 1,\n  \"a\": {\n    \"y<\": \"\\u202e\",\n    \"b\": []\n  }\n}\n"; err != nil ||
		text != want {
		t.Errorf("got %s %v, want %s", text, err, want)
	}
	line, err := o.Line()
	if want := `{"z":1,"a":{"y\u003c":"\u202e","b":[]}}` + "\n"; err != nil || line != want {
		t.Errorf("got %s %v, want %s", line, err, want)
	}
	if _, err := (Object{"state", json.RawMessage("{")}).Text(); err == nil {
		t.Error("what is no JSON is printed as JSON")
	}
}

// lists have one thing each.
var lists = []List{
	Endpoints(make([]operate.EndpointSettings, 1)), Queues(make([]operate.QueueInfo, 1)),
	Peeked(make([]operate.QueuedMessage, 1), 0, false), Letters(make([]recoverability.Letter, 1), 0),
	LetterGroups(make([]recoverability.LetterGroup, 1), ""), Jobs(make([]recoverability.Job, 1)),
	Kept(outbox.KeptPage{Found: make([]outbox.Kept, 1)}), Instances(make([]persistence.Listed, 1), 0),
	Lives(make([]history.Life, 1), 0), Limits(make([]operate.LimitInfo, 1), nil),
	Leases(make([]scheduler.LeaseInfo, 1)),
	Manifests(make([]scheduler.ManifestInfo, 1), 0), ManifestGroups(make([]scheduler.GroupInfo, 1)),
	Runs(make([]scheduler.RunInfo, 1), 0), Migrations(make([]migrations.Migration, 1)),
}

func TestEveryColumnHasItsCell(t *testing.T) {
	t.Parallel()
	for _, l := range lists {
		if len(l.Rows) != 1 || len(l.Rows[0].Cells) != len(l.Columns) {
			t.Errorf("%s: %d columns, and rows of %q", l.Name, len(l.Columns), l.Rows)
		}
	}
}

// A full page has the place where the next one begins, and any other says that it is the last; in the object, too.
func TestFullPagesHaveANext(t *testing.T) {
	t.Parallel()
	named := make([]scheduler.ManifestInfo, 2)
	named[1].Name = "night/settle"
	listed := make([]persistence.Listed, 2)
	listed[1].Instance.Saga, listed[1].Instance.Key = "order", "a/b"
	queued := []operate.QueuedMessage{{}, {Info: saga.Info{ID: someID, Due: someTime}}}
	lives := []history.Life{{}, {ID: someID, Ended: someTime}}
	letters := []recoverability.Letter{{Number: 16}, {Number: 17}}
	runs := []scheduler.RunInfo{{}, {ID: someID}}
	copies := outbox.KeptPage{Next: outbox.KeptPlace{Relayed: someTime.In(time.FixedZone("x", 7200)), ID: someID}}
	for _, c := range []struct {
		of   func(limit int) List
		next string
		json string // after a full page
	}{
		{func(limit int) List { return Manifests(named, limit) }, "night/settle", `"night/settle"`},
		{func(limit int) List { return Instances(listed, limit) }, "order/a/b", `"order/a/b"`},
		{func(limit int) List { return Peeked(queued, limit, true) }, somePlace, `"` + somePlace + `"`},
		{func(limit int) List { return Lives(lives, limit) }, somePlace, `"` + somePlace + `"`},
		{func(limit int) List { return Letters(letters, limit) }, "17", `17`},
		{func(limit int) List { return Runs(runs, limit) }, someID.String(), `"` + someID.String() + `"`},
		{func(limit int) List { copies.More = limit == 2; return Kept(copies) }, somePlace, `"` + somePlace + `"`},
	} {
		full, last := c.of(2), c.of(3)
		if full.Next != c.next || last.Next != "" {
			t.Errorf("%s: the next page begins at %q, and after the last page at %q", full.Name, full.Next, last.Next)
		}
		if text, err := full.View().JSON.Line(); err != nil || !strings.HasSuffix(text, `"next":`+c.json+"}\n") {
			t.Errorf("%s: %s %v", full.Name, text, err)
		}
		text, err := last.View().JSON.Line()
		if err != nil || !strings.HasSuffix(text, `"next":""}`+"\n") && !strings.HasSuffix(text, `"next":0}`+"\n") {
			t.Errorf("%s: %s %v", last.Name, text, err)
		}
	}
	if text, err := Jobs(nil).View().JSON.Line(); err != nil || text != `{"jobs":[]}`+"\n" {
		t.Errorf("a list without pages: %s %v", text, err)
	}
}

// With bodies a list has a line and a body for each thing, in place of a table.
func TestBodiesStandBelowTheirLines(t *testing.T) {
	t.Parallel()
	m := operate.QueuedMessage{Info: saga.Info{ID: someID, Kind: "order.place"}, Body: []byte("abc"), Size: 5}
	parts := Peeked([]operate.QueuedMessage{m}, 0, true).View().Parts
	if len(parts) != 2 || parts[0] != Line(someID.String()+"  order.place  0  0  5") ||
		parts[1] != Block("abc… (3 of 5 bytes)") {
		t.Errorf("%q", parts)
	}
	if parts = Peeked([]operate.QueuedMessage{m}, 0, false).View().Parts; len(parts) != 1 ||
		!slices.Equal(parts[0].(Table).Columns[:2], []string{"DUE", "ID"}) {
		t.Errorf("%q", parts)
	}
}

func TestMapsOfNothingSayWhy(t *testing.T) {
	t.Parallel()
	v := Map(&operate.Map{Edges: []operate.Edge{{Kind: "order.place", To: "orders"}}})
	table, line := v.Parts[0].(Table), v.Parts[1].(Line)
	if len(table.Rows) != 1 || table.Rows[0][0] != "(not seen)" || !strings.Contains(string(line), "has no message") {
		t.Errorf("%q, %q", table, line)
	}
	if v.Mermaid != "flowchart LR\n" {
		t.Errorf("as a flowchart it is %q", v.Mermaid)
	}
}

// A conversation as a flowchart: a node for each message, one for folded messages, and no text with a meaning of its
// own in Mermaid.
func TestConversationAsMermaid(t *testing.T) {
	t.Parallel()
	node := func(kind string, state whereabouts.State, effects ...whereabouts.Group) *whereabouts.Node {
		n := &whereabouts.Node{Effects: effects}
		n.Info.Kind, n.Places = kind, []whereabouts.Place{{State: state, Endpoint: "orders"}}
		return n
	}
	root := node("order.place", whereabouts.Handled,
		whereabouts.Group{Kind: "payment", Count: 1, Nodes: []*whereabouts.Node{node(`pay"];x#<`, whereabouts.Dead)}},
		whereabouts.Group{Kind: "label", Count: 60, Folded: true,
			States: map[whereabouts.State]int{whereabouts.Handled: 57, whereabouts.Dead: 3}})
	roots := []*whereabouts.Node{root, node("", whereabouts.Unknown)}
	v := Conversation(whereabouts.Conversation{Count: 62, Roots: roots})
	if want := `flowchart TD
  m0["order.place<br/>✓ handled orders"]
  m1["pay#quot;];x#35;#lt;<br/>✕ dead orders"]
  m0 --> m1
  m2["label ×60<br/>3 dead, 57 handled"]
  m0 --> m2
  m3["(unknown kind)<br/>? unknown orders"]
`; v.Mermaid != want {
		t.Errorf("got\n%swant\n%s", v.Mermaid, want)
	}
}
