package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/bench/gallery"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

//go:embed edda.sql
var eddaSQL string

// edda is the library at its defaults: one endpoint with one saga, and for latency one plain handler.
type edda struct{}

func init() {
	register("edda", edda{},
		Case{Workload: Step, Store: Optimistic},
		Case{Workload: Step, Store: Pessimistic},
		Case{Workload: Hot, Store: Optimistic, Processes: 1},
		Case{Workload: Hot, Store: Pessimistic, Processes: 1},
		Case{Workload: Hot, Store: Optimistic, Processes: 2},
		Case{Workload: Hot, Store: Pessimistic, Processes: 2},
		Case{Workload: Latency},
		Case{Workload: Leased},
	)
	registerKept("edda", Pessimistic)
}

// steps counts handler calls of this process, so that the queue is only looked at once they have ceased.
var steps atomic.Int64

// charge is the step as a saga's handler.
func charge(o *Order, ctx *saga.Context, m Charge) error {
	steps.Add(1)
	ctx.Send(o.Apply(m))
	return nil
}

func definition(store string) *saga.Definition {
	kind := saga.Pessimistic
	if store == Optimistic {
		kind = saga.Optimistic
	}
	return saga.Define(sagaName, saga.Options{Store: kind},
		saga.StartedBy(func(m Charge) string { return m.Order }, charge))
}

// Prepare migrates, installs the two endpoints and fills the tables with COPY.
func (edda) Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error {
	if err := migrations.Up(ctx, db, migrations.Options{Schema: c.Schema()}); err != nil {
		return err
	}
	b, err := bus.New(db, bus.Options{Schema: c.Schema()})
	if err != nil {
		return err
	}
	work, err := bus.NewEndpoint(b, "work", bus.EndpointOptions{}, bus.Saga(definition(c.Store)))
	if err != nil {
		return err
	}
	sink, err := bus.NewEndpoint(b, "sink", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, Charged) error { return nil }))
	if err != nil {
		return err
	}
	for _, e := range []*bus.Endpoint{work, sink} { // queue_1 and queue_2
		if err := e.Install(ctx); err != nil {
			return err
		}
	}
	if c.Workload == Latency {
		return nil
	}
	rows := []string{"iid", "saga", "key", "version", "state_version", "state"}
	if err := fill(ctx, db, pgx.Identifier{c.Schema(), "saga"}, rows, eddaInstances(c)); err != nil || c.Kept() {
		return err
	}
	rows = []string{"due", "id", "kind", "header", "body"}
	return fill(ctx, db, pgx.Identifier{c.Schema(), "queue_1"}, rows, messageRows(c))
}

// Queue is the table of the endpoint "work".
func (edda) Queue() string { return "queue_1" }

func eddaInstances(c Case) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for i := range c.Instances() {
			state, err := json.Marshal(newOrder(i))
			if !yield([]any{newID(), sagaName, orderKey(i), int64(1), 1, state}, err) {
				return
			}
		}
	}
}

// noHistory disables the history, for the comparison with peers that keep no history.
var noHistory = history.Options{Level: history.Off}

// Work runs the endpoint until its queue is empty. It keeps no history: a separate workload measures that.
func (e edda) Work(ctx context.Context, w *Worker) error {
	return e.work(ctx, w, bus.Options{History: noHistory})
}

func (e edda) work(ctx context.Context, w *Worker, o bus.Options) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	if w.Workload == Latency {
		return e.latency(ctx, w, pool)
	}
	o.Schema, o.Logger = w.Schema(), slog.New(slog.DiscardHandler)
	b, err := bus.New(pool, o)
	if err != nil {
		return err
	}
	part := bus.Saga(definition(w.Store))
	if w.Workload == Leased {
		part = bus.Handle(func(*bus.Context, Charge) error { steps.Add(1); return nil })
	}
	endpoint, err := bus.NewEndpoint(b, "work", bus.EndpointOptions{}, part)
	if err != nil {
		return err
	}
	return w.run(ctx, pool, endpoint, func(ctx context.Context, before int64) error {
		return w.untilEmpty(ctx, pool, before)
	})
}

// run reports that the worker is ready, and runs the endpoint beside until, which gets the number of steps made before.
func (w *Worker) run(ctx context.Context, pool *pgxpool.Pool, r runner,
	until func(ctx context.Context, before int64) error) error {
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	before := steps.Load()
	return runUntil(ctx, r, func(ctx context.Context) error { return until(ctx, before) })
}

// untilEmpty returns when all messages have been handled.
func (w *Worker) untilEmpty(ctx context.Context, pool *pgxpool.Pool, before int64) error {
	empty := statements(eddaSQL, w.Schema())["empty"]
	// The look is a scan over rows that were deleted a moment ago: it waits until this process alone has done
	// everything, or nothing for a while because others have.
	quiet := 0
	for done, last := false, int64(-1); !done; {
		if err := run.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		n := steps.Load()
		if quiet++; n != last {
			quiet, last = 0, n
		}
		if n-before < int64(w.N) && quiet < 10 {
			continue
		}
		if w.Kept() && n-before >= int64(w.N) {
			return nil
		}
		if err := pool.QueryRow(ctx, empty).Scan(&done); err != nil {
			return err
		}
	}
	return nil
}

// latency sends at rest, and stops the watch when the handler's transaction has committed, as the floor does. The
// event identifies the message by a header.
func (edda) latency(ctx context.Context, w *Worker, pool *pgxpool.Pool) error {
	failed := make(chan error, 1)
	b, err := bus.New(pool, bus.Options{Schema: w.Schema(), History: noHistory, Events: func(e event.Event) {
		handled, ok := e.(event.Handled)
		if !ok {
			return
		}
		seq, err := strconv.ParseInt(handled.Info.Header("seq"), 10, 64)
		if err == nil {
			err = w.Handled(Charge{Seq: seq})
		}
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}})
	if err != nil {
		return err
	}
	endpoint, err := bus.NewEndpoint(b, "work", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, Charge) error { return nil }))
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	return runUntil(ctx, endpoint, func(ctx context.Context) error {
		err := w.SendAll(ctx, func(ctx context.Context, m Charge) error {
			_, err := b.Send(ctx, m, saga.WithHeader("seq", strconv.FormatInt(m.Seq, 10)))
			return err
		})
		if err != nil {
			return err
		}
		select {
		case <-w.AllHandled():
			return nil
		case err := <-failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// runner is an endpoint or a relay.
type runner interface {
	Run(ctx context.Context) error
}

// runUntil runs the endpoint beside until, and stops it when that has returned.
func runUntil(ctx context.Context, endpoint runner, until func(context.Context) error) error {
	return runAllUntil(ctx, []func(context.Context) error{endpoint.Run}, until)
}

// runAllUntil runs all of runs beside until, and stops them when until or any of them has returned.
func runAllUntil(ctx context.Context, runs []func(context.Context) error, until func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(runs))
	for _, r := range runs {
		go func() {
			ended <- r(ctx)
			stop()
		}()
	}
	err := until(ctx)
	stop()
	for range runs {
		if runErr := <-ended; runErr != nil {
			return fmt.Errorf("it ended by itself: %w", runErr)
		}
	}
	return err
}

// Effects counts the effects of the run.
func (edda) Effects(ctx context.Context, db *pgxpool.Pool, c Case) (Effects, error) {
	return readEffects(ctx, db, statements(eddaSQL, c.Schema())["effects"])
}

// History is step, and HistoryHot is hot, by edda at each level of its history. -run history is both.
const (
	History    = "history"
	HistoryHot = "history-hot"
)

// chronicle is edda with a history.
type chronicle struct {
	edda
	keeps history.Options
}

func init() {
	for name, keeps := range map[string]history.Options{
		"history-bodies":  {Level: history.Bodies},
		"history-states":  {Level: history.States},
		"history-steps":   {Level: history.Steps},
		"history-steps10": {Level: history.Steps, Sample: 0.1},
		"history-off":     {Level: history.Off},
	} {
		register(name, chronicle{keeps: keeps},
			Case{Workload: History, Store: Optimistic},
			Case{Workload: History, Store: Pessimistic},
			Case{Workload: HistoryHot, Store: Optimistic},
			Case{Workload: HistoryHot, Store: Pessimistic},
		)
	}
}

// Work is edda's, with a history.
func (h chronicle) Work(ctx context.Context, w *Worker) error {
	return h.work(ctx, w, bus.Options{History: h.keeps})
}

// Traced is step by edda with the hooks of eddaotel. Some of the messages carry the context of a trace.
const Traced = "traced"

// traced is edda without a history, with or without the hooks.
type traced struct {
	edda
	hooks, metrics bool
	carrying       int64  // each carrying-th message carries a context; 0 is no message
	flags          string // of the context: "01" is sampled
}

var tracedPeers = map[string]traced{
	"otel-off":       {},
	"otel-0":         {hooks: true},
	"otel-1":         {hooks: true, carrying: 100, flags: "01"},
	"otel-unsampled": {hooks: true, carrying: 1, flags: "00"},
	"otel-metrics":   {hooks: true, metrics: true},
}

func init() {
	for name, p := range tracedPeers {
		register(name, p, Case{Workload: Traced, Store: Optimistic}, Case{Workload: Traced, Store: Pessimistic})
	}
}

// header is that of the message seq.
func (c Case) header(seq int64) []byte {
	p := tracedPeers[c.Peer]
	if p.carrying == 0 || seq%p.carrying != 0 {
		return newHeader()
	}
	whole := newHeader()
	return fmt.Appendf(whole[:len(whole)-1], `,"traceparent":"00-%032x-%016x-%s"}`, seq+1, seq+1, p.flags)
}

// Work is edda's, with the hooks. The spans are made, and dropped instead of exported.
func (p traced) Work(ctx context.Context, w *Worker) error {
	o := bus.Options{History: history.Options{Level: history.Off}}
	if !p.hooks {
		return p.work(ctx, w, o)
	}
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	defer spans.Shutdown(context.WithoutCancel(ctx))
	tracing := eddaotel.Options{TracerProvider: spans, Propagator: propagation.TraceContext{}}
	if p.metrics {
		tracing.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	}
	eddaotel.New(tracing).Bus(&o)
	return p.work(ctx, w, o)
}

// Viewed is step by edda while browsers poll pages that a second process serves from the same database.
const Viewed = "viewed"

// viewed is edda without a history, and with open pages.
type viewed struct {
	edda
	pages int
}

func init() {
	for name, pages := range map[string]int{"pages-20": 20, "pages-0": 0} {
		register(name, viewed{pages: pages}, Case{Workload: Viewed, Store: Optimistic},
			Case{Workload: Viewed, Store: Pessimistic})
	}
}

// begunWith is the processor time that the process of the pages took before the clock started.
var begunWith time.Duration

// Work is edda's, beside the process of the pages. The processor time of that process counts as the client's.
func (v viewed) Work(ctx context.Context, w *Worker) error {
	closePages, took, err := gallery.Open(ctx, gallery.Gallery{DSN: w.DSN, Schema: w.Schema(), Pages: v.pages})
	if err != nil {
		return err
	}
	begunWith = took
	err = v.work(ctx, w, bus.Options{History: noHistory})
	return errors.Join(err, closePages())
}
