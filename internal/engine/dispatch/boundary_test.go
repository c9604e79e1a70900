package dispatch

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The connection breaks before and after every statement of evaluate and dispatch, one at a time. The work in hand is
// done wholly or not at all, and a second server finishes it: each firing has one run, and each run one message.
//
// Row X2.
func TestEveryStatementMayBeTheLast(t *testing.T) {
	w := loopsOpen(t)
	p := w.behindProxy()
	strict := w.group("strict", 1, true, 0)
	reset := func() {
		w.exec("TRUNCATE :schema.run, :schema.run_attempt, :schema.manifest, :schema.sent_message CASCADE")
		w.hourlies(3)
		w.exec("UPDATE :schema.manifest SET overlap = true, group_id = $1 WHERE name = 'm2'", strict)
		w.exec(`UPDATE :schema.manifest SET definition = '{"rule":{"kind":"every","every":3600000000000},` +
			`"variance":1}' WHERE name = 'm3'`)
		w.expired()
	}
	reset()
	s := w.schedulerOver(p.pool)
	w.term(s, "a")
	p.proxy.Set()
	p.work(t, s)
	seen := p.proxy.Seen()
	for _, name := range []string{"guard", "try_lock", "load", "reap", "queue", "promote", "pick", "lock_groups",
		"rooms", "claim", "send", "sent", "let_go", "commit"} {
		if seen[name] == 0 {
			t.Fatalf("statement %s did not pass: %v", name, seen)
		}
	}
	faults := append(faultproxy.Walk(seen, faultproxy.Cut),
		faultproxy.Fault{Statement: "commit", Do: faultproxy.DropReply})
	for _, fault := range faults {
		reset()
		s.core.ringing.forget() // so that each cycle notifies
		p.proxy.Set(fault)
		p.work(t, s)
		fired := p.proxy.Fired()
		p.proxy.Set()
		if len(fired) == 0 {
			t.Errorf("%v did not strike", fault)
		}
		w.halfway(fault.String())
		peace := w.scheduler()
		for w.cycle(peace).elsewhere { // until Postgres has noticed that the other server is gone
		}
		w.drain(peace)
		w.whole(fault.String())
	}
}

func (q *quiet) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.last)
}

type proxied struct {
	proxy *faultproxy.Proxy
	pool  *pgxpool.Pool
}

func (w *loopsWorld) behindProxy() *proxied {
	w.t.Helper()
	dsn := pgdev.DSN(w.t)
	backend, err := faultproxy.Backend(dsn)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy, err := faultproxy.Listen(context.WithoutCancel(w.t.Context()), backend, faultproxy.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = proxy.Close() })
	config, err := pgxpool.ParseConfig(proxy.DSN(dsn))
	if err != nil {
		w.t.Fatal(err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return &proxied{proxy: proxy, pool: pool}
}

// work is the work of a server, which may die at any statement of it.
func (p *proxied) work(t *testing.T, s *Engine) {
	list, err := s.core.leases.List(t.Context(), s.core.pool, LeaseName)
	if err == nil && len(list) == 1 {
		_, err = s.evaluator.cycle(t.Context(), list[0].Term)
	}
	for range 2 {
		if err == nil {
			_, err = s.dispatcher.pass(t.Context())
		}
	}
}

// expired inserts a run whose time is over.
func (w *loopsWorld) expired() {
	w.exec(`WITH m AS (INSERT INTO :schema.manifest (name, definition, kind, body) VALUES ('late',
		'{"rule":{"kind":"on_demand"}}', 'ping', '{}') RETURNING id)
		INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, attempt, message_id, deadline)
		SELECT gen_random_uuid(), id, 'manual', 'active', now(), now(), 1, gen_random_uuid(),
		now() - interval '1 second' FROM m`)
	w.exec("INSERT INTO :schema.run_attempt (run, attempt, message_id) SELECT id, attempt, message_id FROM :schema.run")
	w.exec("INSERT INTO :schema.sent_message (id, run, attempt, manifest) SELECT message_id, id, attempt, 'late' " +
		"FROM :schema.run")
}

// halfway checks that no work is written in part. This must hold at every moment.
func (w *loopsWorld) halfway(story string) {
	w.t.Helper()
	w.onceEach()
	if n := w.count(`SELECT count(*) FROM :schema.manifest m WHERE name LIKE 'm_' AND (due > now()) <> EXISTS (SELECT
		FROM :schema.run r WHERE r.manifest_id = m.id)`); n != 0 {
		w.t.Errorf("%s: %d manifests have their next due time and no run, or the other way round", story, n)
	}
	if n := w.count(`SELECT count(*) FROM :schema.manifest m JOIN :schema.run r ON r.manifest_id = m.id
		WHERE name LIKE 'm_' AND m.run IS DISTINCT FROM CASE WHEN m.overlap AND r.state = 'active' THEN NULL
		ELSE r.id END`); n != 0 {
		w.t.Errorf("%s: %d manifests do not know their open run", story, n)
	}
	ended := w.count("SELECT count(*) FROM :schema.run WHERE state = 'timed_out'")
	if queued := w.count("SELECT count(*) FROM :schema.run WHERE origin = 'schedule'"); queued != 3*ended {
		w.t.Errorf("%s: the cycle ended %d runs and queued %d, want 1 and 3, or none", story, ended, queued)
	}
}

func (w *loopsWorld) whole(story string) {
	w.t.Helper()
	w.onceEach()
	states := []string{}
	for _, name := range []string{"m1", "m2", "m3", "late"} {
		states = append(states, w.states(name))
	}
	if got := strings.Join(states, "; "); got != "schedule active 1; schedule active 1; schedule active 1; manual "+
		"timed_out 1" {
		w.t.Errorf("%s: %s", story, got)
	}
	if n := w.count("SELECT count(*) FROM :schema.sent_message"); n != 4 {
		w.t.Errorf("%s: %d messages, want 4", story, n)
	}
}

// The session of a server inside a cycle is ended: nothing of the cycle is written, and the lock is free at once.
func TestServerThatDiesInACycleLeavesNothing(t *testing.T) {
	w := loopsOpen(t)
	w.hourlies(5)
	s, other := w.scheduler(), w.scheduler()
	s.evaluator.loaded = func() { w.kill("try_lock|load|reap") }
	if _, err := s.evaluator.cycle(t.Context(), noTerm); err == nil {
		t.Error("the cycle did not notice its end")
	}
	if n := w.count("SELECT count(*) FROM :schema.run"); n != 0 {
		t.Errorf("%d runs of a cycle that died", n)
	}
	c := w.cycle(other)
	for c.elsewhere && t.Context().Err() == nil { // the server process that was ended is still exiting
		c = w.cycle(other)
	}
	if c.queued != 5 {
		t.Errorf("%+v, want 5 queued by another server", c)
	}
}

// The same in the middle of a dispatch: the entries are queued still.
func TestServerThatDiesInADispatchLeavesNothing(t *testing.T) {
	w := loopsOpen(t)
	w.queued("q", 5, 0)
	dying := w.scheduler()
	sends := 0
	w.sender.before = countingSends(&sends, func(n int) error {
		if n == 3 {
			w.kill("send|claim")
		}
		return nil
	})
	if _, err := dying.dispatcher.pass(t.Context()); err == nil {
		t.Error("the pass did not notice its end")
	}
	if n := w.count("SELECT count(*) FROM :schema.run WHERE state = 'queued' AND refused = 0"); n != 5 ||
		w.count("SELECT count(*) FROM :schema.sent_message") != 0 {
		t.Errorf("%d entries are queued, want 5, and no message", n)
	}
	w.drain(w.scheduler())
	w.onceEach()
}

// kill ends the sessions of this schema that are in a transaction, and whose last statement is among these names.
func (w *loopsWorld) kill(names string) {
	w.t.Helper()
	n := w.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE state = 'idle in transaction' AND query ~ $1 AND position($2 in query) > 0`,
		fmt.Sprintf("^-- name: (%s)\n", names), w.schema.Name())
	if n != 1 {
		w.t.Errorf("ended %d sessions, want 1", n)
	}
}
