package eddaui_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/demo/world"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// needed lists, for each right, the actions that need it. It is written out, and not read from the actions: if an
// action works with a different right, the test fails until this list is changed on purpose.
var needed = map[eddaui.Permission]string{
	eddaui.Retry:   "dead.retry dead.retry.many dead.undo outbox.replay run.retry",
	eddaui.Edit:    "dead.edit dead.edit.many",
	eddaui.Discard: "dead.discard dead.discard.many message.cancel",
	eddaui.Pause:   "endpoint.pause endpoint.resume group.pause group.resume manifest.pause manifest.resume",
	eddaui.Limit: "endpoint.limit endpoint.limit.reset endpoint.workers endpoint.workers.reset group.set " +
		"lease.resign limit.reset limit.set",
	eddaui.Schedule: "group.cancel manifest.backfill manifest.trigger run.cancel",
	eddaui.Send:     "message.send saga.send saga.send.many timeout.cancel timeout.fire timeout.move",
	eddaui.Repair:   "saga.end saga.end.many saga.patch saga.repair",
	eddaui.Admin:    "history.set keep.set manifest.remove saga.export",

	eddaui.Retry | eddaui.Edit | eddaui.Discard: "dead.cancel dead.note dead.resume",
}

// rightNames are the rights in the words of a refusal.
var rightNames = map[eddaui.Permission]string{
	eddaui.Retry: "Retry", eddaui.Edit: "Edit", eddaui.Discard: "Discard", eddaui.Pause: "Pause", eddaui.Limit: "Limit",
	eddaui.Schedule: "Schedule", eddaui.Send: "Send", eddaui.Repair: "Repair", eddaui.Admin: "Admin",
}

// rightsFor returns the rights of an action; each of them is enough.
func rightsFor(t *testing.T, action string) eddaui.Permission {
	t.Helper()
	for may, names := range needed {
		if slices.Contains(strings.Fields(names), action) {
			return may
		}
	}
	t.Errorf("the list of rights has no %s", action)
	return 0
}

// oneOf returns the first of some rights.
func oneOf(may eddaui.Permission) eddaui.Permission { return may & -may }

const everything = ^eddaui.Permission(0)

// stage is a shop without running programs, with pages for an actor that has the rights of may.
type stage struct {
	*site
	may  eddaui.Permission
	log  *operate.Operator
	shop *world.Shop
	sql  pg.Schema

	stuck bool // a job has not ended, and need not be waited for again
}

func newStage(t *testing.T) *stage {
	t.Helper()
	pool, schema, shop := newShop(t)
	if err := shop.Close(); err != nil { // so that nothing changes by itself
		t.Fatal(err)
	}
	st := &stage{shop: shop}
	config := pool.Config().Copy() // programs have the rights of the runtime role, and so have their pages
	pgtest.Become(config, pgtest.Runtime(t, pool, schema))
	runtime, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Close)
	st.site = serve(t, runtime, schema, eddaui.Options{Sagas: []*saga.Definition{world.Orders},
		Authorize: func(*http.Request) (eddaui.Actor, error) {
			return eddaui.Actor{Name: "ann@example.com", From: "10.0.0.7", Permissions: st.may}, nil
		}})
	st.pool = pool
	if st.log, err = operate.New(pool, operate.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	if st.sql, err = pg.ParseSchema(schema); err != nil {
		t.Fatal(err)
	}
	return st
}

func (st *stage) exec(sql string, args ...any) {
	st.t.Helper()
	if _, err := st.pool.Exec(st.t.Context(), st.sql.Render(sql), args...); err != nil {
		st.t.Fatalf("%s: %v", sql, err)
	}
}

func ask[T any](st *stage, sql string, args ...any) (found T) {
	st.t.Helper()
	if err := st.pool.QueryRow(st.t.Context(), st.sql.Render(sql), args...).Scan(&found); err != nil {
		st.t.Fatalf("%s: %v", sql, err)
	}
	return found
}

// content returns everything that is stored.
func (st *stage) content() string {
	st.t.Helper()
	rows, err := st.pool.Query(st.t.Context(), `SELECT relname FROM pg_class
		WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' ORDER BY relname`,
		pgx.Identifier{st.schema}.Sanitize())
	if err != nil {
		st.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		st.t.Fatal(err)
	}
	var parts []string
	for _, table := range tables {
		parts = append(parts, fmt.Sprintf(
			`SELECT '%s ' || coalesce(md5(string_agg(x::text, E'\n' ORDER BY x::text)), '') AS s FROM %s x`, table,
			pgx.Identifier{st.schema, table}.Sanitize()))
	}
	return ask[string](st, "SELECT string_agg(s, E'\n' ORDER BY s) FROM ("+strings.Join(parts, " UNION ALL ")+") a")
}

// post sends a form. It does not follow redirects.
func (st *stage) post(path string, form url.Values, headers ...string) answer {
	st.t.Helper()
	return st.send(path, strings.NewReader(form.Encode()), append([]string{
		"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

func (st *stage) send(path string, body io.Reader, headers ...string) answer {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(st.t.Context(), pgdev.Patience(40*time.Second))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, st.server.URL+prefix+path, body)
	if err != nil {
		st.t.Fatal(err)
	}
	for n := 0; n+1 < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	client := *st.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got, err := client.Do(r)
	if err != nil {
		st.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		st.t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(text), got.Request.URL}
}

var (
	agreeForm = regexp.MustCompile(`(?s)<form method="post" action="([^"]+)" id="agree">(.*?)</form>`)
	hiddens   = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)
)

// agreement returns the form of a confirmation, as a browser would send it. typed is the typed number.
func (st *stage) agreement(a answer, typed string) (path string, form url.Values) {
	st.t.Helper()
	found := agreeForm.FindStringSubmatch(a.body)
	if a.status != http.StatusOK || found == nil {
		st.t.Fatalf("nothing asks for an agreement, it is %d: %s", a.status, mainOf(a.body))
	}
	to, err := a.url.Parse(html.UnescapeString(found[1]))
	if err != nil {
		st.t.Fatal(err)
	}
	form = url.Values{}
	for _, m := range hiddens.FindAllStringSubmatch(found[2], -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	if typed != "" {
		form.Set("confirm", typed)
	}
	return strings.TrimPrefix(to.RequestURI(), prefix), form
}

// deed is an action with its target.
type deed struct {
	path   string
	form   url.Values
	asks   string // the number on the confirmation, "" if the action runs at once
	verb   string // in the audit
	target string
	is     string // SQL that is false before, and true afterwards
	file   string // text in the file that it answers with, "" if it redirects to a page
}

// refuses checks that an actor without the right cannot run the action, and that nothing happens before the
// confirmation.
func (st *stage) refuses(a *act.Action, d deed) {
	st.t.Helper()
	before := st.content()
	unchanged := func(what string, got answer, want ...int) {
		st.t.Helper()
		if !slices.Contains(want, got.status) {
			st.t.Errorf("%s is %d, want %v: %s", what, got.status, want, mainOf(got.body))
		}
		if st.content() != before {
			st.t.Fatalf("%s has changed something", what)
		}
	}
	st.may = everything
	unchanged("GET", st.do(http.MethodGet, d.path), http.StatusNotFound, http.StatusMethodNotAllowed)
	unchanged("from another site", st.post(d.path, agreed(d), "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	rights := rightsFor(st.t, a.Name)
	st.may &^= rights
	got := st.post(d.path, agreed(d))
	unchanged("without its right", got, http.StatusForbidden)
	if !strings.Contains(got.body, "you need the right "+rightNames[oneOf(rights)]) {
		st.t.Errorf("without its right it says %s", mainOf(got.body))
	}
	for field := range strings.FieldsSeq(musts[a.Name]) {
		form := maps.Clone(d.form)
		form.Set(field, "")
		st.may = eddaui.View | oneOf(rights)
		unchanged("without "+field, st.post(d.path, form), http.StatusBadRequest)
	}
}

// agreed returns the form with a made-up number.
func agreed(d deed) url.Values {
	form := maps.Clone(d.form)
	if form == nil {
		form = url.Values{}
	}
	form.Set("count", "1")
	form.Set("confirm", "yes")
	return form
}

// musts are the required fields of an action, written out like the rights.
var musts = map[string]string{
	"endpoint.workers": "workers", "endpoint.limit": "most", "limit.set": "most", "message.send": "kind body",
	"dead.discard": "reason", "dead.retry.many": "way", "dead.edit.many": "patch way", "dead.discard.many": "reason",
	"saga.send": "saga kind body", "saga.repair": "saga version state reason", "saga.end": "saga reason",
	"saga.patch": "saga version patch reason", "saga.send.many": "kind body", "saga.end.many": "reason",
	"timeout.fire": "saga name", "timeout.move": "saga name at", "timeout.cancel": "saga name",
	"message.cancel": "endpoint", "manifest.pause": "reason", "manifest.backfill": "from until",
	"group.pause": "reason", "group.cancel": "reason", "run.retry": "reason", "run.cancel": "reason",
	"outbox.replay": "since",
}

// does runs the action with its right alone, and checks its effect, and its entry in the audit.
func (st *stage) does(a *act.Action, d deed) {
	st.t.Helper()
	if ask[bool](st, d.is) {
		st.t.Fatalf("it is done before it is done: %s", d.is)
	}
	last := ask[int64](st, "SELECT coalesce(max(number), 0) FROM :schema.audit")
	st.may = eddaui.View | oneOf(rightsFor(st.t, a.Name))
	if d.file != "" {
		st.may |= eddaui.Bodies
	}
	got := st.post(d.path, d.form)
	if d.asks != "" {
		if ask[bool](st, d.is) || ask[int64](st, "SELECT coalesce(max(number), 0) FROM :schema.audit") != last {
			st.t.Fatal("it was done before it was agreed to")
		}
		path, form := st.agreement(got, "")
		if form.Get("count") != d.asks {
			st.t.Errorf("it asks for %s, want %s", form.Get("count"), d.asks)
		}
		got = st.post(path, form)
	}
	if d.file != "" {
		st.filed(got, d.file)
	} else if got.status != http.StatusSeeOther {
		st.t.Fatalf("it is %d: %s", got.status, mainOf(got.body))
	}
	st.ended()
	if !ask[bool](st, d.is) {
		st.t.Errorf("it is not done: %s", d.is)
	}
	if d.file == "" {
		st.led(got, a)
	}
	st.told(d, last)
}

// filed checks that an answer is a file, which a browser does not show.
func (st *stage) filed(got answer, has string) {
	st.t.Helper()
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/octet-stream" ||
		!strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment; filename=") ||
		!strings.Contains(got.body, has) {
		st.t.Errorf("the file is %d, %v: %s", got.status, got.header, got.body)
	}
}

// led checks that an answer redirects to a page of the UI that reports the result.
func (st *stage) led(got answer, a *act.Action) {
	st.t.Helper()
	to, err := got.url.Parse(got.header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.Path, prefix+"/") || strings.Contains(got.header.Get("Location"), "://") {
		st.t.Fatalf("it leads to %q, %v", got.header.Get("Location"), err)
	}
	page := st.get(strings.TrimPrefix(to.RequestURI(), prefix))
	told := act.Told(to.Query().Get("done"), to.Query().Get("counts"))
	if to.Query().Get("done") != a.Name || told == "" ||
		!strings.Contains(page, `<p class="done" role="status">`+html.EscapeString(told)) {
		st.t.Errorf("%s says %q, and its page does not", to, told)
	}
	change := a.Name == "saga.repair" || a.Name == "saga.patch" || a.Name == "timeout.move"
	if change && !strings.Contains(page, ">an operator</a>") {
		st.t.Errorf("the timeline has no row of the operator: %s", mainOf(page))
	}
	if a.Name == "timeout.move" && strings.Count(page, ">in 47 h 59 min<") != 2 {
		st.t.Errorf("the timeout has a second due time: %s", mainOf(page))
	}
}

// told checks that the audit has one new entry, with the actor and the reason.
func (st *stage) told(d deed, since int64) {
	st.t.Helper()
	all, err := st.log.Audit(st.t.Context(), operate.AuditFilter{Limit: 10})
	if err != nil {
		st.t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(e operate.AuditEntry) bool { return e.Number <= since })
	if len(all) != 1 {
		st.t.Fatalf("the audit has %d entries of it, want 1: %+v", len(all), all)
	}
	e := all[0]
	if e.Verb != d.verb || d.target != "" && e.Target != d.target || e.Actor != "ann@example.com" ||
		e.From != "10.0.0.7" || e.Reason != "because of the test" {
		st.t.Errorf("the audit says %+v", e)
	}
}

// ended waits until no job runs.
func (st *stage) ended() {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(st.t.Context(), pgdev.Patience(10*time.Second))
	defer cancel()
	for !st.stuck && ask[bool](st, "SELECT EXISTS (SELECT FROM :schema.dead_letter_job WHERE state = 'open')") {
		if ctx.Err() != nil {
			st.stuck = true
			st.t.Fatal("a job does not end")
		}
	}
}

// Each action has its effect with its right, once and with an entry in the audit, and no effect without the right.
func TestEveryAction(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	deeds := st.deeds()
	for _, a := range act.All() {
		prepare := deeds[a.Name]
		if prepare == nil {
			t.Errorf("action %s is not tested", a.Name)
			continue
		}
		delete(deeds, a.Name)
		t.Run(a.Name, func(t *testing.T) {
			all := st.site
			defer func() { st.site = all }()
			st.site = all.with(t)
			d := prepare()
			if d.form == nil {
				d.form = url.Values{}
			}
			d.form.Set("reason", "because of the test")
			st.refuses(a, d)
			st.does(a, d)
		})
	}
	for name := range deeds {
		t.Errorf("there is no action %s", name)
	}
}
