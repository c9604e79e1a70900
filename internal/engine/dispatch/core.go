package dispatch

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed statements.sql
var statements string

// core holds the parts that the loops share.
type core struct {
	pool    *pg.Pool
	schema  pg.Schema
	sql     pg.Statements
	leases  *lease.Store
	options Options
	log     *slog.Logger
	outage  *pg.Outage
	calm    *slog.Logger // for warnings about work that is retried: drops most of them while the database is away

	due     run.Nudge // a manifest may be due
	ready   run.Nudge // a run may be ready for dispatch
	ringing quiet
}

func newCore(pool *pgxpool.Pool, schema pg.Schema, o Options) (c *core, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	c = &core{
		pool: pg.Committed(pool), schema: schema, options: o, log: o.Logger, due: run.NewNudge(), ready: run.NewNudge(),
	}
	c.outage = pg.NewOutage(c.log)
	c.calm = c.outage.Logger(c.log)
	c.sql, c.leases = pg.Load(statements, schema), lease.New(schema)
	return c, nil
}

// Passing reports whether an error of the database may be gone at the next try, and does not depend on the data.
func Passing(err error) bool {
	switch pgerr.ClassOf(err) {
	case pgerr.Race, pgerr.Busy, pgerr.Cancelled, pgerr.IdleKilled, pgerr.Lost, pgerr.ReadOnly, pgerr.Exhausted:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// limits end a transaction whose process hangs.
type limits struct{ statement, lock, idle string }

var (
	cycleLimits    = limits{statement: "10s", lock: "2s", idle: "10s"}
	dispatchLimits = limits{statement: "30s", lock: "2s", idle: "60s"} // a Sender may be slow
)

// answerWithin bounds a transaction of the loops in this process, too. The server's limits end it much earlier,
// unless the server's machine is lost: then the connection delivers neither data nor an error.
const answerWithin = 40 * time.Second

// queueOpen queues the first statement of each transaction of the loops.
func (c *core) queueOpen(b *pgx.Batch, l limits) {
	b.Queue(c.sql.Get("open"), l.statement, l.lock, l.idle)
}

// inTx runs do in a transaction with cycleLimits. With a term, it commits only while the term is the lease's latest.
func (c *core) inTx(ctx context.Context, t lease.Term, do func(tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		c.queueOpen(b, cycleLimits)
		if t.Epoch != 0 {
			c.leases.QueueGuard(b, t)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return lease.Fenced(err)
		}
		return do(tx)
	})
}

// ask sends statements in a transaction of their own, and reads the results.
func (c *core) ask(ctx context.Context, b *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return c.pool.SendBatch(ctx, b).Close()
}

// reap ends runs that took too long, as timed out.
func (c *core) reap(ctx context.Context, tx pgx.Tx) (ended int, all []ending, err error) {
	if ended, all, err = scanEndings(tx.QueryRow(ctx, c.sql.Get("reap"), cycleReaps)); err != nil {
		return 0, nil, fmt.Errorf("end runs that took too long: %w", err)
	}
	return ended, all, nil
}

// untilNext returns how long it is until the next time that sql finds. An error does not matter: the poll finds that
// time, too.
func (c *core) untilNext(ctx context.Context, sql string, args ...any) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var wait *time.Duration
	if err := c.pool.QueryRow(ctx, sql, args...).Scan(&wait); err != nil || wait == nil {
		return longestPoll
	}
	return max(0, *wait)
}
