package eddaui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lists are the pages that need no name.
var lists = map[string]string{
	"now": "/", "sagas": "/sagas", "dead": "/dead", "schedules": "/manifests", "limits": "/limits", "border": "/border",
	"processes": "/processes", "find": "/find", "audit": "/audit",
	"map": "/map",
}

func TestPagesOfAnEmptySchemaTeach(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	s := serve(t, pool, schema, eddaui.Options{})
	for name, path := range lists {
		golden(t, "empty/"+name, mainOf(s.get(path)))
	}
	golden(t, "empty/frame", s.get("/"))
	s.crawl("/", func(string, string) {})
}

// One shop serves many tests: its story takes seconds to set up.
func TestPagesOfAShop(t *testing.T) {
	t.Parallel()
	pool, schema, shop := newShop(t)
	all := serve(t, pool, schema, eddaui.Options{
		Authorize: allow(eddaui.View | eddaui.Bodies), Sagas: []*saga.Definition{world.Orders},
	})
	all.t = t
	looks := serve(t, pool, schema, eddaui.Options{})
	t.Run("are as the golden files have them", func(t *testing.T) { goldenShop(t, all, shop) })
	t.Run("have no dead link", func(t *testing.T) { noDeadLink(t, all) })
	t.Run("hide bodies and states", func(t *testing.T) { hidden(t, looks, all, shop) })
	t.Run("escape what came from anywhere", func(t *testing.T) { escaped(t, all) })
	t.Run("print what the command prints", func(t *testing.T) { asCommand(t, all) })
	t.Run("are graphs for Mermaid", func(t *testing.T) { asMermaid(t, all, shop) })
	t.Run("find what there is", func(t *testing.T) { finds(t, all, shop) })
	t.Run("need the rights of a reader", func(t *testing.T) { asReader(t, pool, schema) })
	t.Run("show a life under its own key", func(t *testing.T) { ownLives(t, all) })
	t.Run("follow what happens", func(t *testing.T) { follows(t, all, shop) })
}

func goldenShop(t *testing.T, s *site, shop *world.Shop) {
	s = s.with(t)
	for name, path := range lists {
		goldenSoon(t, "shop/"+name, func() string { return noNumbers(mainOf(s.get(path))) })
	}
	for name, path := range map[string]string{
		"instances": "/sagas/order", "instance": "/sagas/order/2026-0012", "lives": "/sagas/order/2026-0003#lives",
		"stuck": "/sagas/order/2026-0010#waits", "endpoint": "/endpoints/payments",
		"retrying":     "/endpoints/erp#messages",
		"failing":      "/endpoints/erp#says",
		"conversation": "/conversations/" + shop.Labels.String(), "message": "/messages/" + shop.First.String(),
		"missing": "/dead/9999",
		"compare": "/sagas/order/2026-0012?from=1&to=3#compare",
	} {
		address, _, _ := strings.Cut(path, "#")
		goldenSoon(t, "shop/"+name, func() string {
			return noNumbers(partOf(t, path, s.do(http.MethodGet, address).body))
		})
	}
	group := regexp.MustCompile(`dead/groups/([0-9a-f]{12})">[^<]*mailbox`).FindStringSubmatch(s.get("/dead"))
	if group == nil {
		t.Fatal("there is no group of full mailboxes")
	}
	golden(t, "shop/group", noNumbers(mainOf(s.get("/dead/groups/"+group[1]))))
	letter := regexp.MustCompile(`dead/(\d+)">`).FindStringSubmatch(s.get("/dead/groups/" + group[1]))
	golden(t, "shop/letter", noNumbers(mainOf(s.get("/dead/"+letter[1]))))
}

var number = regexp.MustCompile(
	`(dead/|dead/N">|id="l-| class="n">| class="n wide">|soft">|letter |customer-|label |2026-000)\d+\b`)

// linked matches the number of a letter in a link to it.
var linked = regexp.MustCompile(`(dead/N">)\d+\b`)

// later matches parts that appear with time: counters every ten seconds, and the lease of the history's cleaner.
var later = regexp.MustCompile(`(?s)<h2>In the last 24 hours</h2>.*?</table></div>\n|` +
	`(<tr id="saga-[^>]*>.*?</th>).*?</tr>|<tr id="e-history">.*?</tr>\n`)

// noNumbers removes the numbers of letters, which depend on the order of deaths, and parts that appear with time.
func noNumbers(body string) string {
	body = number.ReplaceAllString(later.ReplaceAllString(steady(body), "$1"), "${1}N")
	return linked.ReplaceAllString(body, "${1}N")
}

func (s *site) with(t *testing.T) *site {
	other := *s
	other.t = t
	return &other
}

func noDeadLink(t *testing.T, s *site) {
	s = s.with(t)
	paths := s.crawl("/", func(path, body string) {
		if strings.Contains(path, ".json") && !json.Valid([]byte(body)) {
			t.Errorf("%s is no JSON: %.200s", path, body)
		}
	})
	sorts := strings.Join(s.sorted(paths), "\n")
	for _, want := range []string{
		"/", "/sagas/order/*-*?life=*", "/messages/*", "/conversations/*", "/dead/groups/*", "/dead/*.json",
		"/endpoints/mails",
	} {
		if !strings.Contains("\n"+sorts+"\n", "\n"+want+"\n") {
			t.Errorf("no link leads to %s, only to\n%s", want, sorts)
		}
	}
}

// secrets are values of bodies and states of the shop.
var secrets = []string{"customer 12", "ring twice", "4111 ", "27182812", "27182801", "next door"}

func hidden(t *testing.T, s, all *site, shop *world.Shop) {
	s = s.with(t)
	seen := 0
	look := func(path, body string) {
		for _, secret := range secrets {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows %q to somebody who may not see bodies", path, secret)
			}
		}
		if strings.Contains(body, "you do not have the right Bodies") {
			seen++
		}
	}
	s.crawl("/", look)
	for _, path := range []string{
		"/sagas/order/2026-0012", "/sagas/order/2026-0012.json", "/sagas/order/2026-0012?from=1&to=3",
		"/dead/1.json", "/messages/" + shop.First.String(), "/messages/" + shop.First.String() + ".json",
	} {
		look(path, s.get(path))
	}
	if page := s.get("/sagas/order/2026-0012"); !strings.Contains(page, "changed: Notes") {
		t.Error("the names of the fields that have changed are not shown")
	}
	if page := all.with(t).get("/messages/" + shop.First.String()); !strings.Contains(page, "27182801") {
		t.Error("the body is not shown to somebody who may see it")
	}
	if seen == 0 {
		t.Error("no page says that bodies are hidden")
	}
}

func escaped(t *testing.T, s *site) {
	body := s.with(t).get("/sagas/order/2026-0012")
	for _, want := range []string{`&lt;script&gt;alert(1)`, `leave it\u202e next door`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(body, "customer 12") || !strings.Contains(body, "[secret]") {
		t.Error("the page has what the tag edda:\"secret\" marks")
	}
	if strings.Contains(body, "\u202e") || strings.Contains(body, "<script>alert") {
		t.Error("the page has a text as it came")
	}
	for _, q := range []string{"<script>alert(1)</script>", "\u202eabc", "\x00", strings.Repeat("x", 5000)} {
		a := s.with(t).do(http.MethodGet, "/find?q="+url.QueryEscape(q))
		if a.status >= 500 || strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, "\u202e") {
			t.Errorf("looking for %q is %d: %.400s", q, a.status, mainOf(a.body))
		}
	}
}

// The fields of the command's JSON are those of the pages.
func asCommand(t *testing.T, s *site) {
	for path, fields := range map[string][]string{
		"/now.json": {"sentences", "endpoints"}, "/dead.json": {"groups", "next"},
		"/sagas/order/2026-0012.json": {"life", "lives", "timeline", "next", "waits", "may_get"},
		"/dead/1.json":                {"number", "died", "message", "attempts", "error", "headers", "body"},
		"/endpoints/payments.json":    {"queues", "endpoints", "messages"}, "/limits.json": {"limits", "leases"},
		"/manifests.json": {"manifests", "next"}, "/find.json?q=orders": {"id", "found"},
		"/processes.json": {"processes"}, "/audit.json": {"entries", "next"},
		"/map.json":      {"endpoints", "edges", "since"},
		"/database.json": {"at", "level", "vitals", "holders", "tables", "clients", "slots", "connections_used"},
		"/border.json":   {"relays", "rings"}, "/sagas.json": {"sagas", "instances"},
	} {
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s.with(t).get(path)), &got); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, field := range fields {
			if got[field] == nil {
				t.Errorf("%s has no field %s", path, field)
			}
		}
	}
}

// A page with a graph has it as Mermaid, too; any other page answers 404.
func asMermaid(t *testing.T, s *site, shop *world.Shop) {
	for path, want := range map[string]string{
		"/map": "flowchart LR\n", "/conversations/" + shop.Labels.String(): "label.print ×60<br/>3 dead, 57 handled",
		"/dead": "", "/now": "",
	} {
		a := s.with(t).do(http.MethodGet, path+"?as=mermaid")
		plain := a.header.Get("Content-Type") == "text/plain; charset=utf-8"
		if want == "" && a.status != http.StatusNotFound || want != "" && (!plain || !strings.Contains(a.body, want)) {
			t.Errorf("%s as Mermaid is %d %s: %.200s", path, a.status, a.header.Get("Content-Type"), a.body)
		}
	}
}

func finds(t *testing.T, s *site, shop *world.Shop) {
	for query, want := range map[string]string{
		shop.Labels.String():   "/find?q=" + shop.Labels.String(), // a message, and a conversation
		"2026-0012":            "/sagas/order/2026-0012",
		"order/2026-0012":      "/sagas/order/2026-0012",
		"orders":               "/endpoints/orders",
		"order":                "/sagas/order",
		"payment.charge":       "/endpoints/payments",
		"no such thing at all": "/find?q=no+such+thing+at+all",
	} {
		a := s.with(t).do(http.MethodGet, "/find?q="+url.QueryEscape(query))
		if got := strings.TrimPrefix(a.url.RequestURI(), prefix); a.status != http.StatusOK || got != want {
			t.Errorf("finding %q leads to %s with %d, want %s", query, got, a.status, want)
		}
	}
}

// The id of a life does not work under a different key.
func ownLives(t *testing.T, s *site) {
	var id string
	if err := s.pool.QueryRow(t.Context(), "SELECT iid::text FROM "+s.schema+".saga WHERE key = '2026-0012'").Scan(
		&id); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"2026-0012": http.StatusOK, "2026-0013": http.StatusNotFound} {
		if a := s.with(t).do(http.MethodGet, "/sagas/order/"+key+"?life="+id); a.status != want {
			t.Errorf("the life of 2026-0012 under %s is %d, want %d", key, a.status, want)
		}
	}
}

// A role with the rights of a reader can open every page.
func asReader(t *testing.T, pool *pgxpool.Pool, schema string) {
	reader := as(t, pool, pgtest.Reader(t, pool, schema))
	serve(t, reader, schema, eddaui.Options{Authorize: allow(eddaui.View | eddaui.Bodies)}).crawl("/",
		func(string, string) {})
}
