package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "statements.sql")
}

// office is a schema that an operator changes.
type office struct {
	*testing.T
	pool   *pgxpool.Pool
	owner  *pgxpool.Pool // owns the tables
	schema pg.Schema
	op     *operate.Operator

	store  *scheduler.Store
	leases *scheduler.Leases
}

func newOffice(t *testing.T) *office {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	o := &office{T: t, pool: pool, owner: pgtest.Pool(t), schema: schema}
	var errs [3]error
	o.op, errs[0] = operate.New(pool, operate.Options{Schema: schema.Name()})
	o.store, errs[1] = scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()})
	o.leases, errs[2] = scheduler.NewLeases(pool, schema.Name())
	o.must(errors.Join(errs[:]...))
	owner, err := operate.New(o.owner, operate.Options{Schema: schema.Name()})
	o.must(err)
	o.must(owner.Queues().Install(t.Context(), "orders", "order"))
	o.must(owner.Queues().InstallRelay(t.Context(), "abroad", "abroad"))
	o.exec("INSERT INTO :schema.manifest_group (name) VALUES ('reports')")
	return o
}

func (o *office) must(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) exec(sql string, args ...any) {
	o.Helper()
	pgtest.Exec(o, o.owner, o.schema.Render(sql), args...)
}

func (o *office) entries(f operate.AuditFilter) []operate.AuditEntry {
	o.Helper()
	all, err := o.op.Audit(o.Context(), f)
	o.must(err)
	return all
}

func newID() saga.ID { return saga.ID(uuid.Must(uuid.NewV7())) }

// letter adds a dead letter and returns its number.
func (o *office) letter(kind string) (number int64) {
	o.Helper()
	store, b := deadletter.New(o.schema), &pgx.Batch{}
	store.QueueLetters(b, []recoverability.Letter{{Endpoint: "orders", MessageID: newID(), Kind: kind,
		Header: []byte(`{}`), Body: []byte(`{}`), Reason: "attempts", Error: kind}})
	o.must(o.owner.SendBatch(o.Context(), b).Close())
	o.must(o.owner.QueryRow(o.Context(), o.schema.Render("SELECT max(id) FROM :schema.dead_letter")).Scan(&number))
	return number
}

// run adds a run of the manifest with a state.
func (o *office) run(state string) saga.ID {
	o.Helper()
	id := newID()
	o.exec(`INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready)
		SELECT $1, id, coalesce(group_id, 0), 'manual', $2, clock_timestamp(), clock_timestamp()
		FROM :schema.manifest WHERE name = 'nightly'`, id, state)
	return id
}

func manifest(name string) scheduler.Manifest {
	return scheduler.Manifest{Name: name, When: scheduler.Every(time.Hour), Group: "reports",
		Message: saga.Raw{Name: "order", Body: []byte(`{}`)}}
}

// verb is an operation of an operator. The test runs it twice: first while no entry can be written, and then again.
type verb struct {
	name, target string
	do           func(ctx context.Context) error
}

// verbs returns the operations in an order that lets each of them change something.
func (o *office) verbs() []verb {
	endpoints, limits, letters := o.op.Endpoints(), o.op.Limits(), o.op.DeadLetters()
	number := func(n int64) string { return fmt.Sprint(n) }
	retried, edited, discarded := o.letter("a"), o.letter("b"), o.letter("c")
	noted, err := letters.Show(o.Context(), discarded)
	o.must(err)
	waits := newID()
	o.exec(`INSERT INTO :schema.queue_1 (id, due, kind, header, body) VALUES ($1, now(), 'order', '{}', '{}')`, waits)
	kept, copies := outbox.New(o.schema), &pgx.Batch{}
	kept.QueueKeep(copies, []outbox.Kept{{Endpoint: "abroad", ID: newID(), Kind: "abroad", Header: []byte(`{}`),
		Body: []byte(`{}`), Sent: time.Now()}})
	o.must(o.owner.SendBatch(o.Context(), copies).Close())
	o.exec(`INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
		VALUES ('singleton/rates', 'a', 1, now(), now(), now() + interval '1 hour')`)
	order := operate.Target{Saga: "order", Key: "7"}
	o.exec(`INSERT INTO :schema.saga (iid, saga, key, version, state_version, state, timeouts)
		VALUES ($1, 'order', '7', 1, 1, '{"n":1}', '[{"name":"late","kind":"order","due":"2099-01-01T00:00:00Z",
			"id":"0198c0de-0000-7000-8000-000000000008"}]')`, newID())
	o.exec(`INSERT INTO :schema.queue_1 (id, due, kind, header, body) VALUES
		('0198c0de-0000-7000-8000-000000000008', '2099-01-01T00:00:00Z', 'order', '{}', '{}')`)
	o.exec(`INSERT INTO :schema.dead_letter_job (action, state, endpoint, kind, error_group, reason, plan, last)
		VALUES ('retry', 'paused', '', '', '', '', '{1}', 0)`)
	never := saga.ID{}
	job := recoverability.Job{Action: recoverability.JobRetry, Filter: recoverability.LetterFilter{Kind: "none"}}
	return []verb{
		{"endpoint.pause", "orders", func(ctx context.Context) error { return endpoints.Pause(ctx, "orders", "") }},
		{"endpoint.resume", "orders", func(ctx context.Context) error { return endpoints.Resume(ctx, "orders") }},
		{"endpoint.concurrency", "orders",
			func(ctx context.Context) error { return endpoints.SetConcurrency(ctx, "orders", 3) }},
		{"endpoint.concurrency", "orders",
			func(ctx context.Context) error { return endpoints.ResetConcurrency(ctx, "orders") }},
		{"history.set", "orders", func(ctx context.Context) error {
			return endpoints.SetHistory(ctx, "orders", history.Options{Level: history.Bodies})
		}},
		{"history.keep", "history",
			func(ctx context.Context) error { return o.op.SetKeep(ctx, "history", time.Hour, 1<<30) }},
		{"limit.set", "orders", func(ctx context.Context) error { return limits.Set(ctx, "orders", 4) }},
		{"message.cancel", waits.String(), func(ctx context.Context) error {
			_, err := o.op.Messages().Cancel(ctx, "orders", waits, "")
			return err
		}},
		{"message.send", "", func(ctx context.Context) error {
			_, _, err := o.op.Messages().Send(ctx, operate.OutgoingMessage{Kind: "order", Body: []byte(`{}`)})
			return err
		}},
		{"outbox.replay", "abroad", func(ctx context.Context) error {
			_, err := o.op.Replay(ctx, operate.ReplayOptions{
				Filter: outbox.KeptFilter{Endpoint: "abroad", Until: time.Now().Add(time.Hour)}})
			return err
		}},
		{"dead.retry", number(retried),
			func(ctx context.Context) error { return letters.Retry(ctx, retried) }},
		{"dead.edit", number(edited), func(ctx context.Context) error {
			return letters.Edit(ctx, edited, recoverability.Edit{Body: []byte(`1`)})
		}},
		{"dead.note", "group " + noted.Group,
			func(ctx context.Context) error { return letters.SetNote(ctx, noted.Group, "OPS-7") }},
		{"dead.discard", number(discarded),
			func(ctx context.Context) error { return letters.Discard(ctx, discarded, "") }},
		{"dead.job", "", func(ctx context.Context) error {
			_, err := letters.NewJob(ctx, job)
			return err
		}},
		{"dead.cancel", "", func(ctx context.Context) error { return letters.CancelJob(ctx, o.lastJob()) }},
		{"dead.resume", "job 1", func(ctx context.Context) error { return letters.ResumeJob(ctx, 1) }},
		{"dead.undo", "job 1", func(ctx context.Context) error {
			_, err := letters.UndoJob(ctx, 1)
			return err
		}},
		{"manifest.put", "nightly", func(ctx context.Context) error { return o.store.Put(ctx, manifest("nightly")) }},
		{"manifest.declare", "shop", func(ctx context.Context) error {
			_, err := o.store.Sync(ctx, "shop", nil, []scheduler.Manifest{manifest("weekly")})
			return err
		}},
		{"manifest.pause", "nightly", func(ctx context.Context) error { return o.store.Pause(ctx, "nightly", "") }},
		{"manifest.resume", "nightly", func(ctx context.Context) error { return o.store.Resume(ctx, "nightly") }},
		{"manifest.trigger", "nightly", func(ctx context.Context) error {
			_, err := o.store.Trigger(ctx, "nightly", nil, scheduler.TriggerOptions{})
			return err
		}},
		{"manifest.backfill", "nightly", func(ctx context.Context) error {
			_, err := o.store.Backfill(ctx, "nightly",
				scheduler.Period{From: time.Now().Add(-5 * time.Hour), Until: time.Now()})
			return err
		}},
		{"group.set", "reports", func(ctx context.Context) error {
			return o.store.SetGroup(ctx, scheduler.Group{Name: "reports", Max: 2})
		}},
		{"group.pause", "reports", func(ctx context.Context) error { return o.store.PauseGroup(ctx, "reports", "") }},
		{"group.resume", "reports", func(ctx context.Context) error { return o.store.ResumeGroup(ctx, "reports") }},
		{"group.cancel", "reports", func(ctx context.Context) error {
			_, err := o.store.CancelGroup(ctx, "reports", "")
			return err
		}},
		{"run.cancel", "", func(ctx context.Context) error {
			if never.IsZero() {
				never = o.run("queued")
			}
			return o.store.Cancel(ctx, never, "")
		}},
		{"run.retry", "", func(ctx context.Context) error { return o.store.Retry(ctx, never, "") }},
		{"saga.repair", "order/7", func(ctx context.Context) error {
			_, _, err := o.op.Instances().Repair(ctx, operate.Target{Saga: "order", Key: "7", Version: 1}, []byte(`{}`))
			return err
		}},
		{"timeout.move", "order/7", func(ctx context.Context) error {
			_, err := o.op.Instances().MoveTimeout(ctx, order, "late", time.Now().Add(time.Hour))
			return err
		}},
		{"timeout.fire", "order/7", func(ctx context.Context) error {
			_, err := o.op.Instances().FireTimeout(ctx, order, "late")
			return err
		}},
		{"timeout.cancel", "order/7", func(ctx context.Context) error {
			_, err := o.op.Instances().CancelTimeout(ctx, order, "late")
			return err
		}},
		{"saga.end", "order/7", func(ctx context.Context) error {
			_, err := o.op.Instances().End(ctx, order)
			return err
		}},
		{"lease.resign", "singleton/rates",
			func(ctx context.Context) error { return o.leases.Resign(ctx, "singleton/rates") }},
		{"manifest.remove", "nightly", func(ctx context.Context) error { return o.store.Remove(ctx, "nightly") }},
	}
}

func (o *office) lastJob() (number int64) {
	o.must(o.owner.QueryRow(o.Context(), o.schema.Render("SELECT max(id) FROM :schema.dead_letter_job")).Scan(&number))
	return number
}

// content returns all rows of the schema except the audit's.
func (o *office) content() string {
	o.Helper()
	rows, err := o.owner.Query(o.Context(), `SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace($1)
		AND relkind = 'r' AND relname <> 'audit' ORDER BY relname`, pgx.Identifier{o.schema.Name()}.Sanitize())
	o.must(err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	o.must(err)
	var all strings.Builder
	for _, table := range tables {
		text := ""
		o.must(o.owner.QueryRow(o.Context(), "SELECT coalesce(string_agg(x::text, E'\\n' ORDER BY x::text), '') FROM "+
			pgx.Identifier{o.schema.Name(), table}.Sanitize()+" x").Scan(&text))
		fmt.Fprintf(&all, "%s: %s\n", table, text)
	}
	return all.String()
}

// Every change by an operator has one entry, with the actor and the reason, in the transaction of the change. If the
// entry cannot be written, nothing has changed.
func TestEveryChangeHasItsEntry(t *testing.T) {
	o := newOffice(t)
	// A transaction that has written nothing has no id yet.
	o.exec(`CREATE FUNCTION :schema.beside_a_change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		IF pg_current_xact_id_if_assigned() IS NULL THEN
			RAISE EXCEPTION 'the entry is alone in its transaction';
		END IF;
		RETURN new;
		END$$`)
	// A note is only an entry of the audit, without any other row.
	o.exec(`CREATE TRIGGER beside_a_change BEFORE INSERT ON :schema.audit FOR EACH ROW WHEN (new.verb <> 'dead.note')
		EXECUTE FUNCTION :schema.beside_a_change()`)
	ctx := operate.WithActor(t.Context(), operate.Actor{Name: "ann@example.com", From: "10.0.0.7"})
	ctx = operate.WithReason(ctx, "the bank is down")
	for _, v := range o.verbs() {
		if v.name == "run.cancel" {
			_ = v.do(canceled(ctx)) // creates the run
		}
		o.exec(`CREATE FUNCTION :schema.refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN RAISE EXCEPTION ''no entries today''; END'`)
		o.exec("CREATE TRIGGER refuse BEFORE INSERT ON :schema.audit EXECUTE FUNCTION :schema.refuse()")
		before := o.content()
		if err := v.do(ctx); err == nil || !strings.Contains(err.Error(), "no entries today") {
			t.Errorf("%s without an entry: %v", v.name, err)
		}
		if v.name != "manifest.backfill" && o.content() != before {
			t.Errorf("%s has changed something without an entry", v.name)
		}
		o.exec("DROP FUNCTION :schema.refuse() CASCADE")
		last := o.number()
		if err := v.do(ctx); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
		found := o.entries(operate.AuditFilter{Limit: 10})
		found = slices.DeleteFunc(found, func(e operate.AuditEntry) bool { return e.Number <= last })
		if len(found) != 1 {
			t.Errorf("%s has %d entries, want 1: %+v", v.name, len(found), found)
			continue
		}
		e := found[0]
		if e.Verb != v.name || e.Actor != "ann@example.com" || e.From != "10.0.0.7" || e.Reason != "the bank is down" ||
			e.Role == "" || e.At.IsZero() || v.target != "" && e.Target != v.target || e.Target == "" {
			t.Errorf("%s has the entry %+v", v.name, e)
		}
	}
}

// canceled returns a context that prevents every statement.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func (o *office) number() (last int64) {
	o.Helper()
	o.must(o.owner.QueryRow(o.Context(), o.schema.Render("SELECT coalesce(max(number), 0) FROM :schema.audit")).
		Scan(&last))
	return last
}

// An operation without an effect has no entry.
func TestNoChangeHasNoEntry(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	o.must(o.op.Endpoints().Resume(ctx, "orders"))
	o.must(o.op.Endpoints().ResetConcurrency(ctx, "orders"))
	o.must(o.store.Put(ctx, manifest("nightly")))
	run := o.run("queued")
	o.must(o.store.Cancel(ctx, run, ""))
	o.must(o.op.Limits().Set(ctx, "orders", 4))
	last := o.number()
	o.must(o.store.Put(ctx, manifest("nightly")))
	o.must(o.store.Resume(ctx, "nightly"))
	o.must(o.store.Cancel(ctx, run, ""))
	o.must(o.op.Limits().Set(ctx, "orders", 4))
	for name, err := range map[string]error{
		"pause":   o.op.Endpoints().Pause(ctx, "nobody", "x"),
		"retry":   o.op.DeadLetters().Retry(ctx, 1),
		"cancel":  o.store.Cancel(ctx, newID(), ""),
		"trigger": errors.Join(o.trigger("nightly"), errors.New("it may succeed: nobody acts")),
	} {
		if err == nil {
			t.Errorf("%s succeeded", name)
		}
	}
	if found := o.number(); found != last {
		t.Errorf("entries of nothing: %+v", o.entries(operate.AuditFilter{Limit: int(found - last)}))
	}
}

func (o *office) trigger(name string) error {
	_, err := o.store.Trigger(o.Context(), name, nil, scheduler.TriggerOptions{})
	return err
}

// The lists show who paused.
func TestPausedBy(t *testing.T) {
	o := newOffice(t)
	ctx := operate.WithActor(t.Context(), operate.Actor{Name: "ann"})
	o.must(o.store.Put(ctx, manifest("nightly")))
	for _, by := range []string{"ann", ""} { // "" is the role
		ctx := operate.WithActor(t.Context(), operate.Actor{Name: by})
		o.must(o.op.Endpoints().Pause(ctx, "orders", "no stock"))
		o.must(o.store.Pause(ctx, "nightly", "no stock"))
		o.must(o.store.PauseGroup(ctx, "reports", "no stock"))
		if by == "" {
			o.must(o.pool.QueryRow(ctx, "SELECT session_user").Scan(&by))
		}
		set, err := o.op.Endpoints().List(ctx)
		o.must(err)
		at := slices.IndexFunc(set, func(s operate.EndpointSettings) bool { return s.Endpoint == "orders" })
		m, err := o.store.Manifest(ctx, "nightly")
		o.must(err)
		g, err := o.store.GroupOf(ctx, "reports")
		o.must(err)
		if set[at].PausedBy != by || m.Paused.By != by || m.Group.By != by || g.PausedBy != by {
			t.Errorf("paused by %q, %q, %q and %q, want %q", set[at].PausedBy, m.Paused.By, m.Group.By, g.PausedBy, by)
		}
		if why := strings.Join(m.Waits(), " "); strings.Count(why, " by "+by+" (no stock)") != 2 {
			t.Errorf("it says %q", why)
		}
	}
	o.must(o.op.Endpoints().Resume(ctx, "orders"))
	set, err := o.op.Endpoints().List(ctx)
	o.must(err)
	if i := slices.IndexFunc(set, func(s operate.EndpointSettings) bool { return s.PausedBy != "" }); i >= 0 {
		t.Errorf("%+v", set[i])
	}
}

func TestEntriesAreFound(t *testing.T) {
	o := newOffice(t)
	ann := operate.WithActor(t.Context(), operate.Actor{Name: "ann"})
	bob := operate.WithActor(t.Context(), operate.Actor{Name: "bob"})
	o.must(o.op.Endpoints().Pause(ann, "orders", "first"))
	o.must(o.op.Limits().Set(bob, "orders", 4))
	o.must(o.op.Endpoints().Resume(bob, "orders"))
	o.exec(`INSERT INTO :schema.audit (at, actor, role, origin, verb, target, reason)
		VALUES (now() - interval '3 days', '', 'dba', 'psql', 'endpoint.pause', 'mails', 'old')`)
	for want, f := range map[string]operate.AuditFilter{
		"endpoint.pause mails, endpoint.resume orders, limit.set orders, endpoint.pause orders": {},
		"endpoint.resume orders, limit.set orders":                                              {By: "bob"},
		"endpoint.pause mails": {By: "dba"},
		"endpoint.pause mails, endpoint.resume orders, endpoint.pause orders": {Verb: "endpoint"},
		"endpoint.resume orders": {Verb: "endpoint.resume"},
		"":                       {Verb: "end"},
		"endpoint.resume orders, limit.set orders, endpoint.pause orders": {Target: "orders"},
		"endpoint.pause mails, endpoint.resume orders":                    {Limit: 2},
		"limit.set orders, endpoint.pause orders":                         {Before: 3},
	} {
		o.check(f, want)
	}
	o.check(operate.AuditFilter{Until: time.Now().Add(-time.Hour)}, "endpoint.pause mails")
	o.check(operate.AuditFilter{Since: time.Now().Add(-time.Hour), Limit: 1}, "endpoint.resume orders")
	if _, err := o.op.Audit(t.Context(), operate.AuditFilter{Limit: 10_001}); err == nil {
		t.Error("a page of 10,001 was read")
	}
}

func (o *office) check(f operate.AuditFilter, want string) {
	o.Helper()
	var told []string
	for _, e := range o.entries(f) {
		told = append(told, e.Verb+" "+e.Target)
	}
	if got := strings.Join(told, ", "); got != want {
		o.Errorf("%+v finds %s, want %s", f, got, want)
	}
}

// An entry has the old and the new value; text that Postgres cannot store, and a value that is too long, is replaced.
func TestEntryTellsWhatChanged(t *testing.T) {
	o := newOffice(t)
	ctx := operate.WithActor(t.Context(), operate.Actor{Name: "ann\x00" + strings.Repeat("é", 300), From: "\xff"})
	o.must(o.op.Limits().Set(ctx, "orders", 4))
	o.must(o.op.Limits().Set(ctx, "orders", 5))
	e := o.entries(operate.AuditFilter{Limit: 1})[0]
	if string(e.Before) != `{"limit":4,"operated":true}` || string(e.After) != `{"limit":5,"operated":true}` {
		t.Errorf("from %s to %s", e.Before, e.After)
	}
	if len(e.Actor) > 200 || !strings.HasPrefix(e.Actor, "ann\uFFFD") || e.From != "\uFFFD" || e.By() != e.Actor {
		t.Errorf("%+v", e)
	}
	store := audit.New(o.schema)
	big := strings.Repeat("x", 70_000)
	o.must(pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		return store.Add(ctx, tx, audit.Change{Verb: "saga.repair", Target: big, After: big})
	}))
	e = o.entries(operate.AuditFilter{Limit: 1})[0]
	var after map[string]int
	if err := json.Unmarshal(e.After, &after); err != nil || after["bytes"] != 70_002 || len(e.Target) != 200 {
		t.Errorf("%.100s, %v, and a target of %d bytes", e.After, err, len(e.Target))
	}
}

// A DBA who calls the function has an entry too: with the role, and the program of the connection.
func TestSQLFunctionHasItsEntry(t *testing.T) {
	o := newOffice(t)
	o.exec("SELECT :schema.set_limit('orders', 3)")
	o.exec("SELECT :schema.set_limit('orders', 7, true)") // a program declares it
	all := o.entries(operate.AuditFilter{})
	role := ""
	o.must(o.owner.QueryRow(t.Context(), "SELECT session_user").Scan(&role))
	if len(all) != 1 || all[0].Verb != "limit.set" || all[0].Actor != "" || all[0].By() != role {
		t.Errorf("%+v", all)
	}
	if err := o.page(); err == nil {
		t.Error("the limit of an endpoint that is not there was set")
	}
	o.must(o.op.Limits().Reset(operate.WithReason(t.Context(), "as declared"), "orders"))
	if e := o.entries(operate.AuditFilter{Limit: 1})[0]; e.Verb != "limit.reset" || e.Reason != "as declared" {
		t.Errorf("%+v", e)
	}
}

// Newest finds the newest entry of a verb for each target that has one.
func TestNewest(t *testing.T) {
	o := newOffice(t)
	o.exec(`INSERT INTO :schema.audit (actor, origin, verb, target, reason)
		SELECT n, '', v, t, '' FROM unnest(ARRAY['1', '2']) n, unnest(ARRAY['x.a', 'x.b']) v, unnest(ARRAY['t', 'u']) t
		ORDER BY v, n`)
	all, err := audit.New(o.schema).Newest(t.Context(), o.pool, "x.a", "t", "none", "u")
	o.must(err)
	slices.SortFunc(all, func(a, b audit.Entry) int { return strings.Compare(a.Target, b.Target) })
	if len(all) != 2 || all[0].Target != "t" || all[0].Actor != "2" || all[1].Target != "u" || all[1].Verb != "x.a" {
		t.Errorf("%+v", all)
	}
}

func TestOldEntriesGo(t *testing.T) {
	o := newOffice(t)
	store := audit.New(o.schema)
	o.exec(`INSERT INTO :schema.audit (at, actor, origin, verb, target, reason)
		SELECT now() - d * interval '100 days', '', '', 'x', 'x', '' FROM generate_series(0, 9) d`)
	n, err := store.Prune(t.Context(), o.pool, audit.Kept, 4)
	o.must(err)
	m, err := store.Prune(t.Context(), o.pool, audit.Kept, 100)
	o.must(err)
	if left := len(o.entries(operate.AuditFilter{})); n != 4 || m != 2 || left != 4 {
		t.Errorf("%d and %d were deleted, %d are left: want 4, 2 and 4", n, m, left)
	}
}
