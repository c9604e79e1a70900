package batch

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
)

//go:embed batch.sql
var batchStatements string

// Needs are the dependencies of an engine.
type Needs struct {
	To       *message.Recipient
	Options  Options
	Pool     *pg.Pool // of the workers
	Session  *membership.Session
	Sagas    *persistence.Store
	Limit    limit.Known
	Breaker  *contention.Breaker
	Alarm    *wake.Alarm
	Outage   *pg.Outage
	Counts   *outcome.Counts
	Strategy Strategy
	Fence    func(*pgx.Batch) // guards each transaction; nil if the endpoint has no partitions
	Planner  [6]string        // settings of the planner in a session of the user's pool
	PollOnly bool             // no process listens, and a pooler may share sessions
	Settings *settings.Follower
	Workers  func(settings.Settings) int // the number of workers to run, 0 while the endpoint is paused
	Emit     func(...event.Event)
	// Finished does the work that follows the commit of a batch. It reports whether the batch had failures and no
	// success.
	Finished func(context.Context, *outcome.Effects) (failing bool)
}

// Options are the options of the endpoint.
type Options struct {
	BatchMax, BatchBytes, MaxConflicts, MaxCrashes int
	Poll, Drain                                    time.Duration

	Hang func(*pgx.Conn) // closes the socket of a connection of Pool that a handler may still use
}

// Engine is the state that the workers of one Run share.
type Engine struct {
	Needs
	sql  pg.Statements
	pump *pump
}

// New returns an engine that is not yet running.
func New(n Needs, schema pg.Schema) *Engine {
	return &Engine{Needs: n, sql: pg.Load(batchStatements, schema), pump: newPump(n.Alarm, n.Options.BatchMax)}
}

// Wake wakes one idle worker to take. It reports whether a worker was idle.
func (e *Engine) Wake() bool { return e.pump.Wake() }

// WakeAt wakes a worker at the given time.
func (e *Engine) WakeAt(t time.Time) { e.pump.WakeAt(t) }

// Halt stops workers from beginning further batches until the settings have been read.
func (e *Engine) Halt() { e.pump.halt(true) }

// Run takes and handles messages until ctx ends, and returns when the batches in hand are over. They may continue
// until work ends. cancel ends work: when no batch is left, or with run.ErrDrain if the batches have not ended in
// time.
func (e *Engine) Run(ctx, work context.Context, cancel context.CancelCauseFunc) error {
	workers, drain := run.NewGroup(ctx), run.NewGroup(work)
	group := &workerGroup{settings: e.Settings, workers: e.Workers, group: workers, pump: e.pump,
		work: func(taking context.Context) error { return e.work(taking, work) }}
	workers.Go(group.run)
	drain.Go(func(context.Context) error { run.Drain(ctx, work, e.Options.Drain, cancel); return nil })
	err := workers.Wait()
	cancel(nil)
	return errors.Join(err, drain.Wait())
}
