package bus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func (w *world) renew(b *bus.Bus) {
	w.t.Helper()
	if err := bus.RenewNow(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// A live process that was declared dead restores its session with its next renewal, unless it has no endpoint left.
func TestSessionLivesAsLongAsAnEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	stop := w.start("notes", seldom, bus.HandleTx(hears))
	w.until("the session is locked", func() bool {
		return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == 1
	})
	const state = `SELECT died || ' ' || (ended IS NOT NULL) FROM edda.session`
	w.exec(`UPDATE edda.session SET died = true, ended = now()`)
	w.renew(w.bus)
	w.wantText("false false", state)
	stop()
	w.renew(w.bus)
	w.wantText("false true", state)
}

// An endpoint whose session could not begin is not in the list of the process's endpoints.
func TestEndpointThatDidNotBeginIsInNoSession(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.makeQueue("first")
	first := w.endpoint("first", seldom, bus.HandleTx(hears))
	if err := first.Install(t.Context()); err != nil && w.role == "" {
		t.Fatal(err)
	}
	w.exec(`ALTER TABLE edda.session ADD CONSTRAINT refused CHECK (false)`)
	if err := first.Run(t.Context()); err == nil {
		t.Error("an endpoint runs without a session")
	}
	w.exec(`ALTER TABLE edda.session DROP CONSTRAINT refused`)
	w.start("second", seldom, bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
	w.until("the session has begun", func() bool { return w.count(`SELECT count(*) FROM edda.session`) == 1 })
	w.wantText("second", `SELECT string_agg(q.endpoint, ' ') FROM edda.session s, edda.queue q
		WHERE q.id = ANY (s.queues)`)
}

// A process that detects a death notifies the others. While its own connection is lost it detects none: after a restart
// of Postgres no process holds its lock yet. When it listens again it reads the deaths of the time in between.
func TestProcessThatLosesTheConnectionOfItsSession(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var away atomic.Bool
	connects, back := make(chan struct{}, 10), make(chan struct{})
	pool := w.configured(func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			if away.Load() {
				connects <- struct{}{}
				<-back
			}
			return nil
		}
	})
	b, err := bus.New(pool, bus.Options{Schema: w.schema, AutoInstall: true})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	w.makeQueue("notes")
	w.startOn(b, "notes", seldom, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m turn) error {
		heard <- m.Key
		return nil
	}))
	w.until("the session is locked", func() bool {
		return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == 1
	})
	listens := sync.OnceFunc(func() { away.Store(false); close(back) })
	t.Cleanup(listens)
	told := pgdev.Connect(t)
	if _, err := told.Exec(t.Context(), "listen "+w.parsed().Channel()); err != nil {
		t.Fatal(err)
	}
	hear := func(want func(payload string) bool) {
		t.Helper()
		for {
			n, err := told.WaitForNotification(pgdev.Deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			if want(n.Payload) {
				return
			}
		}
	}
	dies := func(found int) {
		t.Helper()
		w.exec(`INSERT INTO edda.session (id, host, pid, queues, expires, locked)
			SELECT gen_random_uuid(), 'a host', 7, '{}', now() + interval '1 hour', true`)
		w.renew(b)
		w.want(found, `SELECT count(*) FROM edda.session WHERE died`)
	}
	dies(1)
	hear(func(payload string) bool { return payload == "died" })
	away.Store(true)
	w.exec(`SELECT pg_terminate_backend(l.pid) FROM edda.session s, pg_locks l WHERE l.locktype = 'advisory'
		AND l.objsubid = 1 AND l.classid::bigint << 32 | l.objid::bigint = hashtextextended(s.id::text,
		s.tableoid::bigint) AND s.id = $1::text::uuid`, bus.Session(b))
	await(w, "it connects again", connects)
	if _, err := w.process(w.dsn, bus.Options{}).Send(t.Context(), turn{Key: "a"}); err != nil {
		t.Fatal(err)
	}
	hear(func(payload string) bool { return payload != "died" })
	listens()
	await(w, "the message is handled", heard)
	dies(1)
}
