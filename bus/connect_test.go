package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// configured returns a pool whose configuration change has changed.
func (w *world) configured(change func(*pgxpool.Config)) *pgxpool.Pool {
	w.t.Helper()
	config, err := pgxpool.ParseConfig(pgdev.DSN(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	pgtest.Become(config, w.role)
	change(config)
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(pool.Close)
	return pool
}

// If senders hold all sessions of a pooler, no sender gets a second session. The first message of a process, which has
// not read the subscriptions yet, must not wait for one.
func TestFirstSendNeedsOneConnection(t *testing.T) {
	t.Parallel()
	id := func() saga.SendOption { return saga.WithID(saga.ID(uuid.New())) }
	raw := bus.RawMessage{Raw: saga.Raw{Name: told{}.Kind(), Body: []byte("{}")}}
	inTx := func(do func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error) func(context.Context, *bus.Bus,
		*pgxpool.Pool) error {
		return func(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return do(ctx, b, tx) })
		}
	}
	for name, send := range map[string]func(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool) error{
		"Send with an id": func(ctx context.Context, b *bus.Bus, _ *pgxpool.Pool) error {
			_, err := b.Send(ctx, told{}, id())
			return err
		},
		"Publish": func(ctx context.Context, b *bus.Bus, _ *pgxpool.Pool) error {
			_, err := b.Publish(ctx, told{})
			return err
		},
		"PublishRaw": func(ctx context.Context, b *bus.Bus, _ *pgxpool.Pool) error { return b.SendRaw(ctx, "*", raw) },
		"SendTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
			_, err := b.SendTx(ctx, tx, told{}, id())
			return err
		}),
		"PublishTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
			_, err := b.PublishTx(ctx, tx, told{})
			return err
		}),
		"SendRawTx": inTx(func(ctx context.Context, b *bus.Bus,
			tx pgx.Tx) error {
			return b.SendRawTx(ctx, tx, "listener", raw)
		}),
		"PublishRawTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
			return b.SendRawTx(ctx, tx, "*", raw)
		}),
		"SendAllTx": inTx(func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
			_, err := b.SendAllTx(ctx, tx, []saga.Posting{{Message: told{}}})
			return err
		}),
		"InSQL": func(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool) error {
			db := stdlib.OpenDBFromPool(pool)
			defer db.Close()
			return b.SQL(db).InTx(ctx, func(tx *sql.Tx) error {
				_, err := b.SQL(nil).SendTx(ctx, tx, told{})
				return err
			})
		},
		"Ingest": func(ctx context.Context, b *bus.Bus, _ *pgxpool.Pool) error {
			_, err := b.Ingest(ctx, outbox.IngestOptions{From: "elsewhere"},
				outbox.IngestMessage{ID: "1", Kind: told{}.Kind(), Body: []byte("{}")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.install("listener", bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
			var connections atomic.Int32
			over := make(chan struct{})
			defer close(over)
			pool := w.configured(func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.BeforeConnect = func(ctx context.Context, _ *pgx.ConnConfig) error {
					if connections.Add(1) > 1 { // there is no other session
						select {
						case <-ctx.Done():
						case <-over:
						}
						return errors.New("there is no other session")
					}
					return nil
				}
			})
			b, err := bus.New(pool, bus.Options{Schema: w.schema, Wakeup: bus.PollOnly})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(5*time.Second))
			defer cancel()
			if err := send(ctx, b, pool); err != nil {
				t.Error(err)
			}
			w.want(1, `SELECT count(*) FROM `+w.queue("listener"))
		})
	}
}

// A transaction may read subscriptions that are never committed, so the rest of the process must not use them.
func TestUncommittedSubscriptionStaysInItsTransaction(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.install("listener", bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
	w.install("late", bus.HandleTx(func(*bus.Context, pgx.Tx, greet) error { return nil }))
	tx := w.begin()
	w.execTx(tx, w.sql(`INSERT INTO edda.subscription (kind, queue) SELECT $1, id FROM edda.queue
		WHERE endpoint = 'late'`), told{}.Kind())
	w.execTx(tx, w.sql(`UPDATE edda.subscription_generation SET generation = generation + 1`))
	if _, err := w.bus.SendTx(t.Context(), tx, told{}); !errors.Is(err, bus.ErrAmbiguous) {
		t.Errorf("in the transaction: %v, want ErrAmbiguous", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.Send(t.Context(), told{}); err != nil {
		t.Errorf("after its rollback: %v", err)
	}
}

// Passwords that change, and SET ROLE, come from the hooks of the pool.
func TestListenerConnectsAsThePoolDoes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	const role = "edda_nobody_is_called_so"
	pool := w.configured(func(c *pgxpool.Config) {
		right := c.ConnConfig.User
		c.ConnConfig.User = role
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.User = right; return nil }
		become := c.AfterConnect
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			if become != nil {
				if err := become(ctx, conn); err != nil {
					return err
				}
			}
			_, err := conn.Exec(ctx, "SET application_name = 'from the hook of "+w.schema+"'")
			return err
		}
	})
	b, err := bus.New(pool, bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w.startOn(b, "listener", seldom, bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
	w.until("the session is locked", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.session WHERE locked`) == 1
	})
	if n := w.count(`SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
		WHERE l.locktype = 'advisory' AND a.application_name = $1`, "from the hook of "+w.schema); n != 1 {
		t.Errorf("%d connections with the lock of a session went through the hooks", n)
	}
}

// A process on standby has no partition yet, and is notified at once when a lease is free.
func TestStandbyOfAPartitionedEndpointListens(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var said [3]lines
	for n := range said {
		b := w.newBus(bus.Options{Schema: w.schema, AutoInstall: true,
			Logger: slog.New(slog.NewTextHandler(&said[n], &slog.HandlerOptions{Level: slog.LevelWarn}))})
		p := w.partitioned(b, "chats", bus.PartitionOptions{Partitions: 1, Endpoint: seldom},
			bus.Saga(chats(time.Hour)))
		if n == 0 {
			w.must(w.partitioned(w.ownersBus(), "chats", bus.PartitionOptions{Partitions: 1},
				bus.Saga(chats(time.Hour))).Install(t.Context()))
		}
		w.runPartitioned(p)
	}
	w.until("all of them listen", func() bool {
		return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == len(
			said)
	})
	for n := range said {
		if got := said[n].String(); got != "" {
			t.Errorf("process %d says: %s", n, got)
		}
	}
}

// When Postgres is away every worker, every loop and the listener fail, again and again. The log has one line when that
// begins, and one when it is over.
func TestOutageIsOneWarningForAllWorkers(t *testing.T) {
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w := poisonedOn(t, server.DSN())
	var said lines
	b, err := bus.New(w.openPool(server.DSN()),
		bus.Options{AutoInstall: true, Logger: slog.New(
			slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	w.preload(50_000)
	var handled, leased atomic.Int64
	w.startOn(b, "poisoned", bus.EndpointOptions{Concurrency: 8, BatchMax: 20},
		bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error {
			handled.Add(1)
			return nil
		}))
	w.startOn(b, "leased", bus.EndpointOptions{Poll: 50 * time.Millisecond},
		bus.Handle(func(*bus.Context, told) error {
			leased.Add(1)
			return nil
		}))
	w.send(told{})
	w.until("the leased endpoint has begun", func() bool { return leased.Load() > 0 })
	for range 2 {
		before := handled.Load()
		w.until("work goes on", func() bool { return handled.Load() > before+2000 })
		if err := server.Restart(t.Context(), pgdev.Immediate); err != nil {
			t.Fatal(err)
		}
	}
	w.untilWithin(pgdev.Patience(time.Minute), "it is over", func() bool {
		return strings.Contains(said.String(),
			"edda: the database is back")
	})
	if n := strings.Count(said.String(), "level=WARN"); n > 4 {
		t.Errorf("of two outages there were %d warnings:\n%s", n, said.String())
	}
}

// If Postgres is away when a program starts, Run returns an error, as a migration or Install would: the address may be
// wrong.
func TestRunEndsWhenPostgresIsAwayAtItsStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), "postgres://edda@"+address+"/edda?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := bus.NewEndpoint(b, "early", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("Run: %v, want an error that names the address", err)
	}
}
