//go:build bouncer

package bouncer_test

import (
	"context"
	"database/sql"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// fewSessions is a world behind a PgBouncer of its own with so many sessions, and a server of its own.
func fewSessions(t *testing.T, sessions int) (*world, *pgdev.Server) {
	t.Helper()
	t.Parallel()
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := &world{t: t, direct: openPool(t, server.DSN()), schema: "edda", mode: pgx.QueryExecModeCacheDescribe,
		log: &journal{}}
	w.bouncer = bouncerBefore(t, server.DSN(),
		map[string]string{"default_pool_size": fmt.Sprint(sessions), "server_login_retry": "1"})
	w.migrate()
	return w, server
}

// anotherDied makes all queues careful: a process that ran them died a moment ago.
func (w *world) anotherDied() {
	w.t.Helper()
	w.exec(`INSERT INTO :schema.session (id, host, pid, queues, expires, locked, ended, died)
		SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM :schema.queue), now(), false, clock_timestamp(),
		true`)
}

// Sixteen workers of two processes share two sessions, and each batch says in the ledger what it has in hand. It is
// slow, and never stands still.
func TestSixteenCarefulWorkersShareTwoSessions(t *testing.T) {
	w, _ := fewSessions(t, 2)
	do := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m task) error { return w.effect(ctx, tx, m.Key, m.N) })
	if err := w.bus.InstallQueue(t.Context(), "tasks", task{}.Kind()); err != nil {
		t.Fatal(err)
	}
	w.anotherDied()
	const n = 600
	w.preload(n)
	for range 2 {
		w.startOn(w.newBus(bus.Options{}), "tasks", bus.EndpointOptions{Concurrency: 8, BatchMax: 5}, do)
	}
	w.awaitEffects(n)
	// A session reports what it wrote a while later.
	w.await("batches are entered into the ledger", "true", "SELECT (n_tup_ins > 0)::text FROM pg_stat_user_tables "+
		"WHERE schemaname = $1 AND relname = 'in_flight'", w.schema)
}

// preload puts n tasks into the queue.
func (w *world) preload(n int) {
	w.t.Helper()
	w.exec(`SELECT :schema.send('task.do', convert_to(format('{"Key":"key","N":%s}', n), 'UTF8'))
		FROM generate_series(1, $1::int) n`, n)
}

// The first messages of a process that only sends need the routes. Whoever has a transaction open must not wait for
// another session to read them.
func TestFirstSendsShareFewSessions(t *testing.T) {
	for _, sessions := range []int{1, 4} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			w, _ := fewSessions(t, sessions)
			if err := w.bus.InstallQueue(t.Context(), "tasks", task{}.Kind()); err != nil {
				t.Fatal(err)
			}
			for name, send := range w.senders() {
				t.Run(name, func(t *testing.T) { w.sendAtOnce(t, 16, send) })
			}
		})
	}
}

type sender func(ctx context.Context, b *bus.Bus, m task, id saga.ID) error

// senders are the ways to send that have a transaction.
func (w *world) senders() map[string]sender {
	db := stdlib.OpenDBFromPool(w.pool)
	w.t.Cleanup(func() { _ = db.Close() })
	inTx := func(do func(ctx context.Context, b *bus.Bus, tx pgx.Tx, m task) error) sender {
		return func(ctx context.Context, b *bus.Bus, m task, _ saga.ID) error {
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "SELECT 1"); err != nil {
					return err
				}
				return do(ctx, b, tx, m)
			})
		}
	}
	raw := func(m task) bus.RawMessage {
		return bus.RawMessage{Raw: saga.Raw{Name: m.Kind(), Body: fmt.Appendf(nil, `{"Key":%q,"N":%d}`, m.Key, m.N)}}
	}
	return map[string]sender{
		"Send with an id": func(ctx context.Context, b *bus.Bus, m task, id saga.ID) error {
			_, err := b.Send(ctx, m, saga.WithID(id))
			return err
		},
		"Publish": func(ctx context.Context, b *bus.Bus, m task, _ saga.ID) error {
			_, err := b.Publish(ctx, m)
			return err
		},
		"PublishRaw": func(ctx context.Context, b *bus.Bus, m task,
			_ saga.ID) error {
			return b.SendRaw(ctx, "*", raw(m))
		},
		"SendTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx, m task) error {
			_, err := b.SendTx(ctx, tx, m)
			return err
		}),
		"PublishTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx, m task) error {
			_, err := b.PublishTx(ctx, tx, m)
			return err
		}),
		"SendAllTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx, m task) error {
			_, err := b.SendAllTx(ctx, tx, []saga.Posting{{Message: m}})
			return err
		}),
		"SendRawTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx, m task) error {
			return b.SendRawTx(ctx, tx, "tasks", raw(m))
		}),
		"InTx": func(ctx context.Context, b *bus.Bus, m task, _ saga.ID) error {
			return b.InTx(ctx, func(tx pgx.Tx) error {
				_, err := b.SendTx(ctx, tx, m)
				return err
			})
		},
		"InSQL": func(ctx context.Context, b *bus.Bus, m task, _ saga.ID) error {
			return b.InSQL(ctx, db, func(tx *sql.Tx) error {
				_, err := b.SendSQL(ctx, tx, m)
				return err
			})
		},
		"Ingest": func(ctx context.Context, b *bus.Bus, m task, _ saga.ID) error {
			_, err := b.Ingest(ctx, bus.IngestOptions{From: "elsewhere"},
				bus.IngestMessage{ID: fmt.Sprint(m.Key, m.N), Kind: m.Kind(), Body: raw(m).Body})
			return err
		},
	}
}

// sendAtOnce has n senders of a bus that knows no routes yet send at the same moment.
func (w *world) sendAtOnce(t *testing.T, n int, send sender) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b := w.newBus(bus.Options{})
	ended := make(chan error, n)
	for i := range n {
		go func() { ended <- send(ctx, b, task{Key: t.Name(), N: i}, saga.ID(uuid.New())) }()
	}
	for range n {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := w.text(`SELECT count(*)::text FROM :schema.queue_1 WHERE convert_from(body, 'UTF8')::json ->> 'Key' = $1`,
		t.Name()); got != fmt.Sprint(n) {
		t.Errorf("%s messages of %d are in the queue", got, n)
	}
}

// Two processes with sixteen workers each have eight sessions. A worker, PgBouncer and Postgres are killed, one after
// another: each time the rate is back at half of what it was within half a minute, and each message has its effect
// once.
func TestRateComesBackAfterKills(t *testing.T) {
	w, server := fewSessions(t, 8)
	if err := w.bus.InstallQueue(t.Context(), "tasks", task{}.Kind()); err != nil {
		t.Fatal(err)
	}
	const n = 40_000
	w.preload(n)
	first, victim := w.taskWorker(), w.taskWorker()
	defer func() { _ = first.end(syscall.SIGKILL) }()
	usual := w.rate(5 * time.Second)
	t.Logf("%.0f messages a second", usual)
	for _, kill := range []struct {
		what string
		do   func() error
	}{
		{"a worker", func() error { _ = victim.end(syscall.SIGKILL); victim = w.taskWorker(); return nil }},
		{"PgBouncer", func() error { return w.bouncer.Restart(t.Context()) }},
		{"Postgres", func() error { return server.Restart(t.Context(), pgdev.Immediate) }},
		{"a worker again", func() error { _ = victim.end(syscall.SIGKILL); victim = w.taskWorker(); return nil }},
	} {
		begun := time.Now()
		if err := kill.do(); err != nil {
			t.Fatalf("%s: %v", kill.what, err)
		}
		for {
			if got := w.rate(3 * time.Second); got >= usual/2 {
				t.Logf("%s was killed: after %v the rate is %.0f", kill.what, time.Since(begun).Round(time.Second), got)
				break
			} else if time.Since(begun) > 33*time.Second {
				t.Fatalf("%s was killed: after half a minute the rate is %.0f, and was %.0f\n%s\n%s", kill.what, got,
					usual, first.said.tail(), victim.said.tail())
			}
		}
	}
	for _, p := range []*worker{first, victim} {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("a worker: %v\n%s", err, p.said.tail())
		}
	}
	const count = `SELECT 'lost=' || $1::int - (SELECT count(DISTINCT n) FROM :schema.effect) - (SELECT count(*)
		FROM :schema.queue_1)
		|| ' doubled=' || (SELECT count(*) - count(DISTINCT n) FROM :schema.effect) || ' dead=' || (SELECT count(*)
		FROM :schema.dead_letter)`
	if got := w.text(count, n); got != "lost=0 doubled=0 dead=0" {
		t.Error(got)
	}
}

func (w *world) taskWorker() *worker {
	return w.process(workerSpec{DSN: w.dsn(), Schema: w.schema, Tasks: true})
}

// rate is how many messages a second have an effect during d.
func (w *world) rate(d time.Duration) float64 {
	w.t.Helper()
	begun, before := time.Now(), w.effects()
	<-time.After(d)
	return float64(w.effects()-before) / time.Since(begun).Seconds()
}

// effects is how many there are; while Postgres is away it asks again.
func (w *world) effects() (n int) {
	w.t.Helper()
	for {
		err := w.direct.QueryRow(w.t.Context(), w.sql("SELECT count(*) FROM :schema.effect")).Scan(&n)
		if err == nil {
			return n
		}
		if w.t.Context().Err() != nil {
			w.t.Fatal(err)
		}
	}
}
