package eddaui_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// changeMuch writes entries of the audit: a pause and its end, a limit, and a repair of a state.
func changeMuch(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Queues().Install(t.Context(), "orders", "order"); err != nil {
		t.Fatal(err)
	}
	by := func(name string) context.Context {
		return operate.WithActor(t.Context(), operate.Actor{Name: name, From: "10.0.0.7"})
	}
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	repair := audit.New(parsed).Add(by("eve <b>"), pool, audit.Change{Verb: "saga.repair", Target: "order/a/b",
		Reason: "it\nhung", Before: map[string]any{"version": 3, "state": map[string]string{"Card": "4111"}},
		After: map[string]any{"version": 4, "state": map[string]string{"Card": "4222"}}})
	for _, err := range []error{
		repair, op.Endpoints().Pause(by("ann"), "orders", "the bank is down"),
		op.Endpoints().Resume(by("bob"), "orders"),
		op.Limits().Set(by("ann"), "orders", 4),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAuditPage(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	changeMuch(t, pool, schema)
	s := serve(t, pool, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Bodies)})
	for query, want := range map[string][]string{
		"":               {"limit.set", "endpoint.resume", "endpoint.pause", "saga.repair"},
		"?by=ann":        {"limit.set", "endpoint.pause"},
		"?verb=endpoint": {"endpoint.resume", "endpoint.pause"}, "?target=order%2Fa%2Fb": {"saga.repair"},
		"?since=1h&by=bob": {"endpoint.resume"}, "?since=2999-01-01T00:00:00Z": nil, "?after=2": {"saga.repair"},
	} {
		var got struct {
			Entries []struct{ Verb, From, Reason string }
		}
		if err := json.Unmarshal([]byte(s.get("/audit.json"+query)), &got); err != nil {
			t.Fatal(err)
		}
		body, verbs := s.get("/audit"+query), []string{}
		for _, e := range got.Entries {
			verbs = append(verbs, e.Verb)
			if e.From != "10.0.0.7" {
				t.Errorf("%s came from %q", e.Verb, e.From)
			}
		}
		if strings.Join(verbs, " ") != strings.Join(want, " ") || strings.Count(body, `<tr id="a-`) != len(want) {
			t.Errorf("%q shows %q, want %q", query, verbs, want)
		}
	}
	body := s.get("/audit")
	for _, want := range []string{
		"eve &lt;b&gt;", "it\nhung", `href="./sagas/order/a%2Fb"`, `href="./endpoints/orders"`, "limit 4", "4222",
		"the bank is down",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, since := range []string{"noon", "-1h"} {
		if a := s.do(http.MethodGet, "/audit?since="+since); a.status != http.StatusBadRequest {
			t.Errorf("since %s is %d", since, a.status)
		}
	}
	page := serve(t, pool, schema, eddaui.Options{}).get("/audit")
	if strings.Contains(page, "4111") || strings.Contains(page, "4222") || !strings.Contains(page, "version 3 → 4") {
		t.Error("without the right to see bodies it shows states, or not the rest")
	}
}

// A hundred changes are a page, and the rest is behind a link.
func TestAuditPageHasAnEnd(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	for n := range 101 {
		_, err := pool.Exec(t.Context(), `INSERT INTO `+schema+`.audit (actor, origin, verb, target, reason)
			VALUES ('ann', '', 'limit.set', $1, '')`, strconv.Itoa(n))
		if err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, pool, schema, eddaui.Options{})
	first := s.get("/audit?by=ann")
	older := links.FindAllStringSubmatch(first, -1)
	next := ""
	for _, m := range older {
		if strings.Contains(m[1], "after=") {
			next = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	to, err := url.Parse(next)
	if err != nil || next == "" || to.Query().Get("by") != "ann" {
		t.Fatalf("no link leads to older entries by ann: %q %v", next, err)
	}
	if n := strings.Count(first, `<tr id="a-`); n != 100 {
		t.Errorf("a page has %d entries", n)
	}
	if n := strings.Count(s.get("/audit"+next), `<tr id="a-`); n != 1 {
		t.Errorf("the last page has %d entries", n)
	}
}

// The page of a thing links to its changes.
func TestPagesLeadToTheirAudit(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	changeMuch(t, pool, schema)
	s := serve(t, pool, schema, eddaui.Options{})
	body := s.get("/endpoints/orders")
	if !strings.Contains(body, `href="../audit?target=orders"`) {
		t.Error("the page of an endpoint has no link to its audit")
	}
	if n := strings.Count(s.get("/audit?target=orders"), `<tr id="a-`); n != 3 {
		t.Errorf("the audit of the endpoint has %d entries, want 3", n)
	}
}
