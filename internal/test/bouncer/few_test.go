//go:build bouncer

package bouncer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Sixteen workers of two processes share two sessions, and each batch is written into the journal before it runs,
// because a process has crashed. It is slow, and never stands still.
func TestSixteenCarefulWorkersShareTwoSessions(t *testing.T) {
	w := newWorld(t, 2)
	w.must(w.bus().InstallQueue(t.Context(), "tasks", task{}.Kind()))
	pgtest.Exec(t, w.direct, `INSERT INTO edda.session (id, host, pid, queues, expires, locked, ended, died)
		SELECT gen_random_uuid(), 'a host', 7, ARRAY(SELECT id FROM edda.queue), now(), false, clock_timestamp(), true`)
	const n = 600
	pgtest.Exec(t, w.direct, `SELECT edda.send('task.do', convert_to(format('{"Key":"key","N":%s}', n), 'UTF8'))
		FROM generate_series(1, $1::int) n`, n)
	for range 2 {
		e, err := bus.NewEndpoint(w.bus(), "tasks", bus.EndpointOptions{Concurrency: 8, BatchMax: 5, Poll: quickly},
			bus.HandleTx(do))
		w.must(err)
		pgtest.Run(t, "the endpoint", e.Run)
	}
	w.await(fmt.Sprintf("%d of %[1]d", n), "SELECT count(DISTINCT n) || ' of ' || count(*) FROM edda.effect")
	// Postgres counts the writes of a session some time after the session made them.
	w.await("true", "SELECT (n_tup_ins > 0)::text FROM pg_stat_user_tables WHERE relname = 'in_flight'")
}

// The first messages of a process that only sends need the routes. A sender with an open transaction must not wait for
// another session to read them.
func TestFirstSendsShareOneSession(t *testing.T) {
	w := newWorld(t, 1)
	w.must(w.bus().InstallQueue(t.Context(), "tasks", task{}.Kind()))
	inTx := func(ctx context.Context, do func(tx pgx.Tx) error) error {
		return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT 1"); err != nil {
				return err
			}
			return do(tx)
		})
	}
	for name, send := range map[string]func(ctx context.Context, b *bus.Bus, m task) error{
		"Send with an id": func(ctx context.Context, b *bus.Bus, m task) error {
			_, err := b.Send(ctx, m, saga.WithID(saga.ID(uuid.New())))
			return err
		},
		"SendTx": func(ctx context.Context, b *bus.Bus, m task) error {
			return inTx(ctx, func(tx pgx.Tx) error { _, err := b.SendTx(ctx, tx, m); return err })
		},
		"PublishTx": func(ctx context.Context, b *bus.Bus, m task) error {
			return inTx(ctx, func(tx pgx.Tx) error { _, err := b.PublishTx(ctx, tx, m); return err })
		},
		"InTx": func(ctx context.Context, b *bus.Bus, m task) error {
			return b.InTx(ctx, func(tx pgx.Tx) error { _, err := b.SendTx(ctx, tx, m); return err })
		},
		"Ingest": func(ctx context.Context, b *bus.Bus, m task) error {
			_, err := b.Ingest(ctx, outbox.IngestOptions{From: "elsewhere"}, outbox.IngestMessage{ID: fmt.Sprint(m.N),
				Kind: m.Kind(), Body: fmt.Appendf(nil, `{"Key":%q,"N":%d}`, m.Key, m.N)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(20*time.Second))
			defer cancel()
			const n = 16
			b, ended := w.bus(), make(chan error, n) // of a bus that has not read the routes
			for i := range n {
				go func() { ended <- send(ctx, b, task{Key: t.Name(), N: i}) }()
			}
			for range n {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			w.await(fmt.Sprint(n), "SELECT count(*)::text FROM edda.queue_1 WHERE convert_from(body, "+
				"'UTF8')::json ->> 'Key' = $1", t.Name())
		})
	}
}
