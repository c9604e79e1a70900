package uihost_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/ui/host"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// several serves the pages of two databases, each with an endpoint of its own, and of a third that does not answer.
// It returns the printed address.
func several(t *testing.T) (url string) {
	t.Helper()
	shop := pgdev.Pool(t)
	schema := pgdev.Schema(t)
	bank, err := pgxpool.New(t.Context(), pgdev.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bank.Close)
	for endpoint, pool := range map[string]*pgxpool.Pool{"orders": shop, "payments": bank} {
		pgtest.Migrate(t, pool, schema)
		op, err := operate.New(pool, operate.Options{Schema: schema})
		if err == nil {
			err = op.Queues().Install(t.Context(), endpoint, endpoint+".kind")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gone, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gone.Close)
	out, in := io.Pipe()
	host, err := uihost.New(uihost.Options{Schema: schema, Listen: "127.0.0.1:0", Out: in,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- host.Serve(ctx, uihost.Database{Name: "shop", Pool: shop}, uihost.Database{Name: "bank", Pool: bank},
			uihost.Database{Name: "gone", Pool: gone})
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("it says nothing: %v", <-ended)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		_ = in.Close()
	})
	return address.FindString(lines.Text())
}

// Each database has its pages under its name, and a switch links the pages of the two.
func TestSeveralDatabases(t *testing.T) {
	t.Parallel()
	url := several(t)
	base, _, _ := strings.Cut(url, "/?token=")
	for _, path := range []string{"/", "/shop/", "/bank/dead.json", "/nothing"} {
		if code, body, _ := newPerson(t).get(base+path, nil); code != http.StatusForbidden {
			t.Errorf("%s without the token is %d: %.100s", path, code, body)
		}
	}
	// Names of databases are not shown to a site that has pointed its own name to this machine.
	eve := newPerson(t)
	eve.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"/", "/nothing"} {
		code, _, head := eve.get(base+path, func(r *http.Request) { r.Host = "evil.example" })
		if code != http.StatusForbidden {
			t.Errorf("%s for another host is %d, to %q", path, code, head.Get("Location"))
		}
	}
	ann := newPerson(t)
	if code, _, _ := ann.get(url, nil); code != http.StatusOK {
		t.Fatalf("the printed address is %d", code)
	}
	for path, want := range map[string][]string{
		"/":                        {"orders", `href="./../shop/" aria-current="true"`, `href="./../bank/"`},
		"/shop/":                   {"orders", `href="./../bank/">bank</a>`},
		"/bank/":                   {"payments", `href="./../bank/" aria-current="true"`},
		"/bank/dead":               {`href="./../shop/dead">shop</a>`},
		"/bank/audit?by=ann":       {`href="./../shop/audit">shop</a>`},
		"/bank/endpoints/payments": {`href="../../shop/"`, `href="../dead"`},
	} {
		code, body, _ := ann.get(base+path, nil)
		if code != http.StatusOK {
			t.Errorf("%s is %d", path, code)
		}
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s has no %s", path, text)
			}
		}
	}
	if _, body, _ := ann.get(base+"/bank/now.json", nil); strings.Contains(body, "orders") {
		t.Error("the pages of one database show the endpoints of another")
	}
	if code, _, _ := ann.get(base+"/other/", nil); code != http.StatusNotFound {
		t.Errorf("a database that is not there is %d", code)
	}
	// An instance, and a page that does not exist, belong to one database.
	for _, path := range []string{"/bank/instance?saga=order&key=7", "/bank/nothing"} {
		if _, body, _ := ann.get(base+path, nil); !strings.Contains(body, `href="./../shop/">shop</a>`) {
			t.Errorf("%s does not lead to the first page of the other database", path)
		}
	}
	code, body, _ := ann.get(base+"/gone/", nil)
	if code != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer") ||
		!strings.Contains(body, `href="./../shop/"`) {
		t.Errorf("a database that does not answer is %d, without a way to the others", code)
	}
	if code, _, _ := ann.get(base+"/shop/", nil); code != http.StatusOK {
		t.Errorf("and the others are %d", code)
	}
}

// With one database the pages are at the root, and have no switch.
func TestOneDatabaseHasNoSwitch(t *testing.T) {
	t.Parallel()
	url, _ := start(t, uihost.Options{})
	ann := newPerson(t)
	ann.get(url, nil)
	base, _, _ := strings.Cut(url, "?")
	if code, body, _ := ann.get(base, nil); code != http.StatusOK || strings.Contains(body, `aria-label="Databases"`) {
		t.Errorf("it is %d, with a switch: %v", code, strings.Contains(body, `aria-label="Databases"`))
	}
}

func TestNamesOfDatabases(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"a", "a"}, {"a", ""}, {"a/b"}, {".."}, {"a b"}, {"é"},
		{strings.Repeat("a", 64)}} {
		if err := uihost.CheckNames(names); !errors.Is(err, uihost.ErrUsage) {
			t.Errorf("%q are %v", names, err)
		}
	}
	if err := uihost.CheckNames([]string{"a", "shop-1", "Bank_2"}); err != nil {
		t.Error(err)
	}
}
