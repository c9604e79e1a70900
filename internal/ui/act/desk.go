package act

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Desk has the connections and stores for actions.
type Desk struct {
	Pool      *pgxpool.Pool
	Op        *operate.Operator
	Scheduler *scheduler.Store
	Leases    *scheduler.Leases
	Jobs      *Jobs
	Long      time.Duration // for how long one request changes many instances
	Limit     time.Duration // time limit of an action that writes no file

	o Options
}

// Options are the options of a Desk.
type Options struct {
	Schema     string
	Scheduler  *scheduler.Store // nil: a store over the pool
	Redact     func(kind string, body json.RawMessage) json.RawMessage
	Definition func(saga string) *saga.Definition     // returns nil for an unknown saga
	Body       func(kind string, body []byte) []byte  // the part that may be shown
	State      func(saga string, state []byte) []byte // the part that may be shown
}

// Limits of actions: usual is the default of Desk.Limit. A file is read an instance at a time.
const (
	usual  = 30 * time.Second
	ofFile = 5 * time.Minute
)

// LimitOf returns how long an action may take.
func (d *Desk) LimitOf(a *Action) time.Duration {
	if a.file != nil {
		return ofFile
	}
	return d.Limit
}

// NewDesk returns a Desk over a pool that may write. It does no I/O.
func NewDesk(pool *pgxpool.Pool, o Options) (d *Desk, err error) {
	d = &Desk{Pool: pool, Scheduler: o.Scheduler, Long: long, Limit: usual, o: o}
	of := operate.Options{Schema: o.Schema, Patch: jsonpatch.MergePatch} // numbers keep their text
	if o.Redact != nil {
		of.Redact = func(saga string, state []byte) []byte { return o.Redact(saga, state) }
	}
	if d.Op, err = operate.New(pool, of); err != nil {
		return nil, err
	}
	if d.Leases, err = scheduler.NewLeases(pool, o.Schema); err != nil {
		return nil, err
	}
	if d.Scheduler == nil {
		d.Scheduler, err = scheduler.NewStore(pool, scheduler.StoreOptions{Schema: o.Schema})
	}
	return d, err
}

// letters returns the methods for dead letters.
func (d *Desk) letters() operate.DeadLetters { return d.Op.DeadLetters() }

// now returns the time by the database's clock.
func (d *Desk) now(ctx context.Context) (now time.Time, err error) {
	if err = d.Pool.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", err)
	}
	return now.UTC(), nil
}
