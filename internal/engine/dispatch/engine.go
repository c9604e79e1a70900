package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LeaseName is the lease of the one server that evaluates and reconciles.
const LeaseName = "scheduler"

// Sender puts a message on a bus, in the caller's transaction: see scheduler.Sender.
type Sender interface {
	SendTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error)
}

// Engine runs the loops. It is safe for concurrent use, but only one Run may be active.
type Engine struct {
	core       *core
	evaluator  *evaluator
	dispatcher *dispatcher
	sweeper    *sweeper
	cleaner    *cleaner
	keeper     *lease.Keeper
}

// New makes an Engine over pool. It does no I/O. An error names the option that is wrong.
func New(pool *pgxpool.Pool, schema pg.Schema, sender Sender, o Options) (*Engine, error) {
	c, err := newCore(pool, schema, o)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		core:       c,
		evaluator:  &evaluator{core: c, lockKey: lockKey(schema)},
		dispatcher: &dispatcher{core: c, sender: sender, pace: pace{first: 5 * time.Second, most: time.Minute}},
		sweeper:    &sweeper{core: c},
		cleaner:    &cleaner{core: c},
	}
	o.Lease.Logger = c.calm
	e.keeper, err = lease.NewKeeper(pool, c.leases, lease.Job{Name: LeaseName, Run: e.Lead}, o.Lease)
	return e, err
}

// Calm returns the Engine's logger for warnings about work that is tried again: it drops most of them while the
// database is away.
func (e *Engine) Calm() *slog.Logger { return e.core.calm }

// Health returns the state of this process with respect to the scheduler's lease.
func (e *Engine) Health() lease.Health { return e.keeper.Health() }

// Swept returns the last reconciliation of this process, or the zero Swept before the first.
func (e *Engine) Swept() Swept {
	if last := e.sweeper.swept.Load(); last != nil {
		return *last
	}
	return Swept{}
}

// Check returns an error if Run could not work: the tables are missing, this role may not use them, or the pool has
// fewer connections than MaxConcurrentDispatch plus one.
func (e *Engine) Check(ctx context.Context) error {
	c := e.core
	if most, want := int(c.pool.Config().MaxConns), c.options.MaxConcurrentDispatch+1; most < want {
		return fmt.Errorf(
			"check scheduler: the pool has %d connections, and %d are needed: lower MaxConcurrentDispatch, "+
				"or raise MaxConns",
			most,
			want,
		)
	}
	_, err := c.pool.Exec(ctx, c.sql.Get("probe"))
	switch pgerr.ClassOf(err) {
	case pgerr.Unprepared:
		return fmt.Errorf("check scheduler: schema %q is not migrated: run \"edda migrate up\": %w",
			c.schema.Name(), err)
	case pgerr.Denied:
		return fmt.Errorf("check scheduler: the role lacks a right: run the script of \"edda migrate grants\": %w",
			err)
	}
	if err != nil {
		return fmt.Errorf("check scheduler: %w", pgerr.ExplainPooler(err))
	}
	if c.options.PollOnly {
		return nil
	}
	shared, err := pg.SharesSessions(ctx, c.pool.Config())
	if err != nil {
		return fmt.Errorf("check scheduler: detect a pooler in front of Postgres: %w", pgerr.ExplainPooler(err))
	}
	if shared {
		return errPooler
	}
	return nil
}

var errPooler = errors.New("check scheduler: a pooler in transaction mode is in front of Postgres, where LISTEN does " +
	"not work: set scheduler.Options.PollOnly")

// Run runs the loops until ctx ends, and then returns nil, after the last transaction. While the database is away,
// Run waits. It returns an error if it cannot continue: a right is missing, or the schema is not migrated.
func (e *Engine) Run(ctx context.Context) error {
	group := run.NewGroup(ctx)
	group.Go(e.dispatcher.run)
	group.Go(e.cleaner.run)
	if !e.core.options.PollOnly {
		group.Go(e.listen)
	}
	group.Go(e.keeper.Run)
	return group.Wait()
}

// Lead evaluates and reconciles until ctx ends. Run calls it in each term of the lease, which the Keeper releases after
// Lead has returned.
func (e *Engine) Lead(ctx context.Context, t lease.Term) error {
	group := run.NewGroup(ctx)
	group.Go(func(ctx context.Context) error { return e.evaluator.run(ctx, t) })
	group.Go(func(ctx context.Context) error { return e.sweeper.run(ctx, t) })
	return group.Wait()
}

// Once evaluates and dispatches once, without the lease. It reports whether a further call may find more. It is for
// tests that control the time.
func (e *Engine) Once(ctx context.Context) (more bool, err error) {
	c, err := e.evaluator.cycle(ctx, lease.Term{})
	if err != nil {
		return false, err
	}
	again, err := e.dispatcher.pass(ctx)
	return c.loaded+c.reaped+c.queued > 0 || again, err
}

// NewRunID returns a UUIDv7, so that ids are in the order of time.
func NewRunID() saga.ID { return saga.ID(uuid.Must(uuid.NewV7())) }
