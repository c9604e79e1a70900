package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	job     struct{ N int } // takes up to half a second, or no time once the ledger is calm
	slowJob struct{ N int } // takes longer than the test: its worker is killed
	turn    struct {        // comes after every message of its key with a smaller number
		Key string
		N   int
	}
	done struct { // what job and turn send
		Key   string
		N     int
		Slot  int
		Epoch int64
	}
)

func (job) Kind() string     { return "chaos.job" }
func (slowJob) Kind() string { return "chaos.slow" }
func (turn) Kind() string    { return "chaos.turn" }
func (done) Kind() string    { return "chaos.done" }

const (
	working = "working"
	effects = "effects"
	lease   = 3 * time.Second
	poll    = 200 * time.Millisecond
	failing = 20 // one run of a turn in so many
)

// task is what a worker of either scenario is told.
type task struct{ Ordered, Defaults bool }

// work is the life of a worker process.
func work(ctx context.Context, w *lab.Worker) error {
	var t task
	if err := w.Read(&t); err != nil {
		return err
	}
	return w.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		h := handlers{worker: w.Name, pool: pool}
		o := bus.EndpointOptions{Concurrency: most, Lease: lease, Poll: poll}
		parts := []bus.Part{bus.Handle(h.job), bus.Handle(h.slow)}
		switch {
		case t.Defaults:
			o = bus.EndpointOptions{}
		case t.Ordered:
			o.Concurrency, o.Ordered, o.Policy = 0, bus.Strict, func(recoverability.Failure) recoverability.Decision {
				return recoverability.RetryIn(50 * time.Millisecond)
			}
			parts = []bus.Part{bus.Handle(h.turn, bus.KeyedBy(func(m turn) string { return m.Key }))}
		}
		leased, err := bus.NewEndpoint(b, working, o, parts...)
		if err != nil {
			return nil, err
		}
		counting, err := bus.NewEndpoint(b, effects, bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(h.count))
		return []edda.Runner{leased, counting}, err
	})
}

type handlers struct {
	worker string
	pool   *pgxpool.Pool
}

// watched writes down when the work begins and when it ends, each in a transaction of its own, whatever happens to ctx:
// a beginning of which this process does not know the number could not be ended.
func (h handlers) watched(ctx *bus.Context, begin string, args []any, work func(calm bool) error) (err error) {
	var no int64
	var calm bool
	if err := h.pool.QueryRow(context.WithoutCancel(ctx), sql.Get(begin), args...).Scan(&no, &calm); err != nil {
		return err
	}
	defer func() {
		_, noted := h.pool.Exec(context.WithoutCancel(ctx), sql.Get("end"), no, err == nil)
		err = errors.Join(err, noted)
	}()
	return work(calm)
}

func busy(ctx context.Context, calm bool, least, most time.Duration) error {
	if calm {
		return nil
	}
	return run.Sleep(ctx, least+rand.N(most-least))
}

func (h handlers) job(ctx *bus.Context, m job) error {
	slot, epoch := ctx.Slot()
	return h.watched(ctx, "begin_in_slot", []any{h.worker, "job", m.N, slot, epoch}, func(calm bool) error {
		if err := busy(ctx, calm, 50*time.Millisecond, 500*time.Millisecond); err != nil {
			return err
		}
		ctx.Send(done{Key: "job", N: m.N, Slot: slot, Epoch: epoch})
		return nil
	})
}

func (h handlers) slow(ctx *bus.Context, m slowJob) error {
	slot, epoch := ctx.Slot()
	return h.watched(ctx, "begin_in_slot", []any{h.worker, "slow", m.N, slot, epoch}, func(bool) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

func (h handlers) turn(ctx *bus.Context, m turn) error {
	return h.watched(ctx, "begin_in_lane", []any{h.worker, m.Key, m.N, os.Getpid()}, func(calm bool) error {
		if err := busy(ctx, calm, 20*time.Millisecond, 420*time.Millisecond); err != nil {
			return err
		}
		if rand.IntN(failing) == 0 {
			return errors.New("one run of twenty fails")
		}
		ctx.Send(done{Key: m.Key, N: m.N})
		return nil
	})
}

// count keeps what was sent, and when it was sent by the database's clock.
func (handlers) count(ctx *bus.Context, tx pgx.Tx, m done) error {
	_, err := tx.Exec(ctx, sql.Get("count"), m.Key, m.N, m.Slot, m.Epoch, ctx.Info().Sent)
	return err
}

// fill makes the queues and sends all messages before any worker starts.
func fill[M saga.Message](ctx context.Context, l *lab.Lab, all []M, more ...string) error {
	if err := l.Bus.InstallQueue(ctx, working, append(more, all[0].Kind())...); err != nil {
		return err
	}
	if err := l.Bus.InstallQueue(ctx, effects, done{}.Kind()); err != nil {
		return err
	}
	const atOnce = 500
	for from := 0; from < len(all); from += atOnce {
		some := all[from:min(len(all), from+atOnce)]
		raws := make([]bus.RawMessage, len(some))
		for i, m := range some {
			body, err := json.Marshal(m)
			if err != nil {
				return err
			}
			raws[i].Name, raws[i].Body = m.Kind(), body
		}
		if err := l.Bus.SendRaw(ctx, working, raws...); err != nil {
			return fmt.Errorf("fill the queue: %w", err)
		}
	}
	return nil
}
