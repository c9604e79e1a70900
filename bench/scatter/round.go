package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/examples/patterns/scatter"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/demo"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// round is one line of the table: a design with a store, on queues and instances of its own.
type round struct {
	settings
	pool   *pgxpool.Pool
	schema string // of Edda's tables
	design string
	store  saga.Store

	street  *bus.Bus        // sends from outside
	servers []*bus.Endpoint // that host the sagas
	others  []*bus.Endpoint // the work, and the end of it
	ended   chan struct{}   // a run has ended
	totals  sync.Map        // by run: the sum of its replies
	errands stopwatch
	line    line
	runs    []string
}

// line holds the measurements of the round.
type line struct {
	design, store string
	scatters      int
	took          time.Duration // all of them together
	saga          operate.SagaCounters
	quiet, during lap
	requests      int
}

// play creates the tables, measures, and drops Edda's tables. The program's own tables keep the results.
func (r *round) play(ctx context.Context) (err error) {
	if err := migrations.Up(ctx, r.pool, migrations.Options{Schema: r.schema}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, demo.DropSchema(context.WithoutCancel(ctx), r.pool, r.schema)) }()
	if err := r.build(ctx); err != nil {
		return err
	}
	measure := r.measure
	if r.full {
		measure = r.measureFull
	}
	if err := measure(ctx); err != nil {
		return fmt.Errorf("%s, %s: %w", r.line.design, r.line.store, err)
	}
	return r.settle(ctx)
}

func (r *round) newBus(events func(event.Event)) (*bus.Bus, error) {
	return bus.New(r.pool, bus.Options{Schema: r.schema, AutoInstall: true, Events: events,
		History: history.Options{Level: history.Off},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

// operator returns the reader of the engine's counters.
func (r *round) operator() (*operate.Operator, error) {
	return operate.New(r.pool, operate.Options{Schema: r.schema})
}

// build makes the endpoints and their queues. Every server has a bus of its own, as a process would.
func (r *round) build(ctx context.Context) (err error) {
	if r.street, err = r.newBus(nil); err != nil {
		return err
	}
	parts := []bus.Part{bus.Saga(scatter.Saga(r.store)), bus.Saga(errands(r.store, "errand"))}
	if r.bytes > 0 {
		parts[0] = bus.Saga(scatter.KeepSaga(r.store))
	}
	if r.design == appendDesign {
		parts = []bus.Part{bus.Saga(scatter.CollectSaga(r.store)), bus.Saga(errands(r.store, "errand"))}
		items, err := scatter.NewItems(r.schema)
		if err != nil {
			return err
		}
		if err := r.host(&r.others, "items", bus.EndpointOptions{}, nil, bus.HandleTx(items.Keep),
			bus.HandleTx(items.Look)); err != nil {
			return err
		}
	}
	observe := r.errands.observe
	if r.full {
		observe = nil
	}
	for range r.workers {
		if err := r.host(&r.servers, "desk", bus.EndpointOptions{}, observe, parts...); err != nil {
			return err
		}
	}
	if err := r.host(&r.others, "requests", bus.EndpointOptions{Concurrency: 1, BatchMax: 60}, nil,
		bus.HandleTx(scatter.DoWork)); err != nil {
		return err
	}
	if err := r.host(&r.others, "elsewhere", bus.EndpointOptions{}, observe,
		bus.Saga(errands(r.store, "other-errand"))); err != nil {
		return err
	}
	r.ended = make(chan struct{}, 1)
	ended := func(e event.Event) {
		if _, ok := e.(event.Handled); ok {
			r.ended <- struct{}{}
		}
	}
	if err := r.host(&r.others, "ledger", bus.EndpointOptions{Concurrency: 1}, ended,
		bus.HandleTx(r.enter)); err != nil {
		return err
	}
	for _, e := range append(r.servers, r.others...) {
		if err := e.Install(ctx); err != nil {
			return err
		}
	}
	return nil
}

var errWrong = errors.New("not everything is as it should be")

// enter notes the end of a run, before the commit: a second time it writes the same.
func (r *round) enter(_ *bus.Context, _ pgx.Tx, m scatter.Gathered) error {
	r.totals.Store(m.Run, m.Total)
	return nil
}

func (r *round) host(to *[]*bus.Endpoint, name string, o bus.EndpointOptions, events func(event.Event),
	parts ...bus.Part) error {
	b, err := r.newBus(events)
	if err != nil {
		return err
	}
	e, err := bus.NewEndpoint(b, name, o, parts...)
	*to = append(*to, e)
	return err
}

// during runs endpoints while f does.
func during(ctx context.Context, endpoints []*bus.Endpoint, f func(ctx context.Context) error) error {
	group := run.NewGroup(ctx)
	for _, e := range endpoints {
		group.Go(e.Run)
	}
	group.Go(func(ctx context.Context) error {
		defer group.Stop()
		return f(ctx)
	})
	return group.Wait()
}

// turns is how often quiet and load alternate, so that other work of the machine affects both.
const turns = 5

// measure sends errands in quiet, and while scatters are gathered in sequence.
func (r *round) measure(ctx context.Context) error {
	return during(ctx, append(r.servers, r.others...), func(ctx context.Context) error {
		// connections, plans and first instances
		if _, err := r.errandsDuring(ctx, rest(r.long.quiet/turns)); err != nil {
			return err
		}
		for turn := range turns {
			quiet, err := r.errandsDuring(ctx, rest(r.long.quiet/turns))
			if err != nil {
				return err
			}
			if turn > 0 && r.line.took >= r.long.lasts { // one scatter was enough
				break
			}
			busy, err := r.errandsDuring(ctx, r.scatters)
			if err != nil {
				return err
			}
			r.line.quiet.add(quiet)
			r.line.during.add(busy)
		}
		return nil
	})
}

// scatters is one turn of them.
func (r *round) scatters(ctx context.Context) error {
	for begun := time.Now(); ; {
		if err := r.scatter(ctx); err != nil || time.Since(begun) >= r.long.lasts/turns {
			return err
		}
	}
}

func rest(d time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error { return run.Sleep(ctx, d) }
}

// errandsDuring sends errands while f runs, and returns their critical times when the last one has been run.
func (r *round) errandsDuring(ctx context.Context, f func(ctx context.Context) error) (lap, error) {
	group, sent := run.NewGroup(ctx), 0
	r.errands.take()
	group.Go(func(ctx context.Context) (err error) {
		sent, err = sendErrands(ctx, r.street, r.rate)
		return err
	})
	group.Go(func(ctx context.Context) error {
		defer group.Stop()
		return f(ctx)
	})
	if err := group.Wait(); err != nil {
		return lap{}, err
	}
	for deadline := time.Now().Add(r.long.within); r.errands.count() < sent; {
		if time.Now().After(deadline) {
			return lap{}, fmt.Errorf("%d of %d errands were run within %v (-within)", r.errands.count(), sent,
				r.long.within)
		}
		if err := run.Sleep(ctx, time.Millisecond); err != nil {
			return lap{}, err
		}
	}
	return r.errands.take(), nil
}

// scatter begins one run and waits for its end.
func (r *round) scatter(ctx context.Context) error {
	begun := time.Now()
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.untilEnded(ctx); err != nil {
		return err
	}
	r.line.scatters++
	r.line.took += time.Since(begun)
	return nil
}

func (r *round) begin(ctx context.Context) error {
	name := fmt.Sprintf("%s-%s-%d", r.line.design, r.line.store, len(r.runs))
	r.runs = append(r.runs, name)
	var m saga.Message = scatter.Gather{Run: name, Design: r.design, Last: r.requests, Bytes: r.bytes}
	if r.design == appendDesign {
		m = scatter.Collect{Run: name, Requests: r.requests, Bytes: r.bytes}
	}
	_, err := r.street.Send(ctx, m)
	return err
}

func (r *round) untilEnded(ctx context.Context) error {
	timer := time.NewTimer(r.long.within)
	defer timer.Stop()
	select {
	case <-r.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("a scatter did not end within %v (-within)", r.long.within)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// measureFull holds the replies back until all of them wait, and measures how fast they are gathered then.
func (r *round) measureFull(ctx context.Context) error {
	err := during(ctx, r.servers, func(ctx context.Context) error {
		return errors.Join(r.begin(ctx), r.untilWaiting(ctx, "requests"))
	})
	if err != nil {
		return err
	}
	err = during(ctx, r.others, func(ctx context.Context) error { return r.untilWaiting(ctx, "desk") })
	if err != nil {
		return err
	}
	begun := time.Now()
	r.line.scatters = 1
	return during(ctx, append(r.servers, r.others...), func(ctx context.Context) error {
		err := r.untilEnded(ctx)
		r.line.took = time.Since(begun)
		return err
	})
}

// untilWaiting waits until the messages of all requests are in a queue.
func (r *round) untilWaiting(ctx context.Context, endpoint string) error {
	for deadline := time.Now().Add(r.long.within); time.Now().Before(deadline); {
		operator, err := r.operator()
		if err != nil {
			return err
		}
		queues, err := operator.Queues().List(ctx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q.Endpoint == endpoint && q.Ready >= int64(r.requests) {
				return nil
			}
		}
		if err := run.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("not all messages waited for endpoint %s within %v (-within)", endpoint, r.long.within)
}

// settle reads the counters of the engine, and compares the totals. The endpoints have ended, so their counters are
// written.
func (r *round) settle(ctx context.Context) error {
	operator, err := r.operator()
	if err != nil {
		return err
	}
	all, err := operator.Endpoints().Counters(ctx, 0)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Endpoint == "desk" && c.Saga != "errand" {
			r.line.saga = c
		}
	}
	for _, run := range r.runs {
		if got, _ := r.totals.Load(run); got != scatter.Want(r.requests) {
			return fmt.Errorf("%w: the replies of %s add up to %+v, want %+v", errWrong, run, got,
				scatter.Want(r.requests))
		}
	}
	letters, err := operator.DeadLetters().List(ctx, recoverability.LetterFilter{Limit: 10})
	for _, l := range letters {
		err = errors.Join(err, fmt.Errorf("%w: %s died in %s: %s", errWrong, l.Kind, l.Endpoint, l.Error))
	}
	var left int
	items := "SELECT count(*) FROM " + pgx.Identifier{r.schema, "saga_item"}.Sanitize()
	if failed := r.pool.QueryRow(ctx, items).Scan(&left); failed != nil || left > 0 {
		err = errors.Join(err, failed, fmt.Errorf("%w: %d items are left", errWrong, left))
	}
	return err
}
