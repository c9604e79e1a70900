//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type tick struct{}
type move struct {
	Key string
	N   int
}
type moved struct {
	Key string
	N   int
}
type strict struct {
	Key string
	N   int
}

func (tick) Kind() string   { return "load.tick" }
func (move) Kind() string   { return "load.move" }
func (moved) Kind() string  { return "load.moved" }
func (strict) Kind() string { return "load.strict" }

// purse counts the messages that it was sent, and sends the count each time.
type purse struct{ N int }

func purses(store saga.Store, name string) bus.Part {
	return bus.Saga(saga.Define(name, saga.Options{Store: store},
		saga.StartedBy(func(m move) string { return m.Key }, func(s *purse, ctx *saga.Context, _ move) error {
			s.N++
			ctx.Send(moved{Key: name + ctx.Key(), N: s.N})
			return nil
		})))
}

const (
	workerVariable = "EDDA_BOUNCER_WORKER"
	quickly        = 50 * time.Millisecond // of the polls
	brief          = 3 * time.Second       // of the leases
)

// write leaves an effect, and fails now and then: the effect is to be gone then.
func write(ctx *bus.Context, tx pgx.Tx, key string, n int) error {
	if err := effect(ctx, tx, key, n); err != nil {
		return err
	}
	if rand.IntN(20) == 0 {
		return errors.New("now and then")
	}
	return nil
}

// work is the life of a worker process behind PgBouncer: it hosts one endpoint of each kind, and a scheduler.
func work() error {
	var dsn string
	ctx, err := procs.Attend(context.Background(), workerVariable, &dsn)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn+"&pool_max_conns=6")
	if err != nil {
		return err
	}
	defer pool.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := bus.New(pool, bus.Options{AutoInstall: true, Wakeup: bus.PollOnly, Logger: logger})
	if err != nil {
		return err
	}
	runners, err := everything(b, logger)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(runners...)
	if err == nil {
		err = host.Install(ctx)
	}
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func everything(b *bus.Bus, logger *slog.Logger) (all []edda.Runner, err error) {
	o := bus.EndpointOptions{Poll: quickly, Lease: brief, MaxCrashes: 1000,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.RetryIn(20 * time.Millisecond)
		}}
	endpoint := func(name string, o bus.EndpointOptions, parts ...bus.Part) {
		e, failed := bus.NewEndpoint(b, name, o, parts...)
		all, err = append(all, e), errors.Join(err, failed)
	}
	ordered, limited := o, o
	ordered.Ordered, limited.ClusterConcurrency = bus.Strict, 2
	endpoint("pessimistic", o, purses(saga.Pessimistic, "pessimistic"))
	endpoint("optimistic", o, purses(saga.Optimistic, "optimistic"))
	endpoint("moves", limited,
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m moved) error { return write(ctx, tx, m.Key, m.N) }),
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ tick) error {
			return write(ctx, tx, ctx.Info().Firing.Run.String(), 0)
		}))
	endpoint("strict", ordered, bus.Handle(func(ctx *bus.Context, m strict) error { ctx.Send(moved(m)); return nil },
		bus.KeyedBy(func(m strict) string { return m.Key })))
	parts, failed := bus.NewPartitioned(b, "parts", bus.PartitionOptions{Partitions: 2, Lease: brief,
		Endpoint: bus.EndpointOptions{Poll: quickly, MaxCrashes: 1000}}, purses(saga.Optimistic, "parts"))
	s, refused := scheduler.New(b, scheduler.Options{Owner: "load", PollOnly: true, Logger: logger,
		Evaluate: 300 * time.Millisecond, Dispatch: 200 * time.Millisecond},
		scheduler.Manifest{Name: "often", When: scheduler.Every(time.Second), Message: tick{}})
	return append(all, parts, s), errors.Join(err, failed, refused)
}

func (w *world) worker() *procs.Process {
	w.Helper()
	p, err := procs.Start(procs.Job{Name: "a worker", Variable: workerVariable, Task: w.dsn()})
	w.must(err)
	w.Cleanup(p.Kill)
	return p
}

// Two processes do a bit of everything, in four sessions. A worker, PgBouncer, Postgres and a worker again are killed
// with messages in hand. Each message has its effect once, the messages of a purse in one line of numbers.
func TestTwoProcessesShareFourSessions(t *testing.T) {
	const sessions, round = 4, 200
	w := newWorld(t, sessions)
	first, victim := w.worker(), w.worker()
	w.await("7 3", `SELECT (SELECT count(*) FROM edda.queue) || ' ' || (SELECT count(DISTINCT endpoint)
		FROM edda.subscription s JOIN edda.queue q ON q.id = s.queue WHERE s.kind = 'load.move')`)
	b, sent := w.bus(), 0
	killWorker := func() error { victim.Kill(); victim = w.worker(); return nil }
	for _, kill := range []func() error{killWorker, func() error { return w.bouncer.Restart(t.Context()) },
		func() error { return w.server.Restart(t.Context(), pgdev.Immediate) }, killWorker,
		func() error { return nil }} {
		for range round {
			w.sendBoth(b, sent)
			sent++
		}
		w.await("true", "SELECT (count(*) > $1::int)::text FROM edda.effect WHERE n > 0", 4*(sent-round))
		w.must(kill())
	}
	w.await(fmt.Sprintf("%d of %[1]d", 4*sent), `SELECT count(DISTINCT (key, n)) || ' of ' || count(*) FROM edda.effect
		WHERE key ~ '^(pessimistic|optimistic|parts|strict)'`)
	w.await("15", `SELECT count(*)::text FROM (SELECT FROM edda.effect WHERE key ~ '^(pessimistic|optimistic|parts)'
		GROUP BY key HAVING max(n) = count(*) AND min(n) = 1) x`)
	w.await("true", `SELECT (count(*) > 0 AND count(*) = (SELECT count(*) FROM edda.effect WHERE n = 0 AND
		key ~ '-.*-'))::text FROM edda.run WHERE state = 'succeeded'`)
	for _, p := range []*procs.Process{first, victim} {
		if err := p.Stop(pgdev.Patience(20 * time.Second)); err != nil {
			t.Error(err)
		}
	}
	w.await("0", "SELECT count(*)::text FROM edda.dead_letter")
	w.wantClean(sessions)
}

// sendBoth sends the n-th messages, again while the connections of the bus are broken.
func (w *world) sendBoth(b *bus.Bus, n int) {
	w.Helper()
	key, one, two := fmt.Sprint(n%5), saga.ID(uuid.New()), saga.ID(uuid.New())
	var err error
	for deadline := time.Now().Add(pgdev.Patience(20 * time.Second)); time.Now().Before(deadline); {
		_, err = b.Publish(w.Context(), move{Key: key, N: n}, saga.WithID(one))
		if err == nil {
			err = b.InTx(w.Context(), func(tx pgx.Tx) error {
				_, err := b.SendTx(w.Context(), tx, strict{Key: "strict" + key, N: n + 1}, saga.WithID(two))
				return err
			})
		}
		if err == nil {
			return
		}
	}
	w.Fatal(err)
}
