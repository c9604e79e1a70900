package operate

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/snapshot"
	"github.com/edda-go/edda/internal/engine/repair"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed operate.sql
var statements string

// Errors that a caller can handle.
var (
	// ErrNotInstalled means that no endpoint of that name has ever been installed in this schema.
	ErrNotInstalled = queue.ErrNotInstalled
	// ErrNotFound means that no queue has the message: it has been handled, or never existed.
	ErrNotFound = errors.New("there is no such message in the queue")
	// ErrNoLimit means that an endpoint has no limit yet, or that no program has used a limit of that name.
	ErrNoLimit = limit.ErrNoLimit
)

// Operator reads one schema, and makes the changes of an operator. It is safe for concurrent use.
type Operator struct {
	pool   *pg.Pool
	schema pg.Schema
	sql    pg.Statements
	routes *queue.Router

	options Options

	repair   *repair.Store
	settings *settings.Store
	limits   *limit.Store
	leases   *lease.Store
	sagas    *persistence.Store
	counters *counters.Store
	letters  *deadletter.Store
	outbox   *outbox.Store
	rings    *ring.Store
	pins     *snapshot.Look
	history  *whereabouts.Reader
	entries  *history.Store
	audit    *audit.Store
}

// Options configure an Operator. Every zero is a default.
type Options struct {
	Schema  string // "" is "edda"
	CountTo int64  // maximum of Queues.List's counts of a queue's messages; 0 is CountLimit
	// Redact returns the part of a state that the audit, the history and an export may have, as bus.Options.Redact
	// does; nil omits only the known secrets.
	Redact func(saga string, state []byte) []byte
	// Unmasked keeps and exports a state even if it is unknown which parts are secret, because there is no definition,
	// and the history has no state of the last version. Without it such a state is left out, whatever Redact does.
	Unmasked bool
	// Patch applies a JSON merge patch (RFC 7396) to a body, for jobs of dead letters with a recoverability.Job.Patch.
	// This package links no library for that; the command edda does.
	Patch func(body, patch []byte) ([]byte, error)
}

var errNoPatch = errors.New("Options.Patch is missing: it changes the bodies")

// New makes an Operator over pool. It does no I/O. It returns an error if the schema's name is invalid.
func New(pool *pgxpool.Pool, options Options) (*Operator, error) {
	if pool == nil {
		return nil, errors.New("new operator: the pool is nil")
	}
	schema, err := pg.ParseSchema(options.Schema)
	if err != nil {
		return nil, fmt.Errorf("new operator: %w", err)
	}
	o := &Operator{
		pool: pg.Committed(pool), schema: schema, sql: pg.Load(statements, schema), settings: settings.New(schema),
		limits: limit.New(schema), leases: lease.New(schema), sagas: persistence.New(schema),
		counters: counters.New(schema),
		entries:  history.New(schema), letters: deadletter.New(schema), outbox: outbox.New(schema),
		rings: ring.New(schema), pins: snapshot.New(schema), audit: audit.New(schema), options: options,
	}
	o.options.CountTo = cmp.Or(options.CountTo, CountLimit)
	o.routes = queue.NewRouter(o.pool, schema, nil)
	o.repair = repair.New(o.pool, schema, o.routes, repair.Options{Redact: options.Redact, Unmasked: options.Unmasked})
	o.history = whereabouts.New(o.pool, schema, o.routes)
	return o, nil
}

// find reads the routes again, because the endpoint may have been installed shortly before.
func (o *Operator) find(ctx context.Context, endpoint string) (*queue.Queue, error) {
	known, err := o.routes.Reload(ctx, o.pool)
	if err != nil {
		return nil, err
	}
	if q := known.Endpoints[endpoint]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("%w: install it with Endpoint.Install, or with the command \"edda migrate install\", "+
		"unless its name is misspelt", ErrNotInstalled)
}

// inAudit runs change in a transaction that also adds the audit entry c. change may fill in c.
func (o *Operator) inAudit(ctx context.Context, c *audit.Change, change func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return o.audit.Add(ctx, tx, *c)
	})
}

// queueLook adds a statement that makes the planner of the transaction use the index.
func (o *Operator) queueLook(pipeline *pgx.Batch) { pipeline.Queue(o.sql.Get("look")) }

// notify sends notifications. It drops errors, because a process without a notification polls.
func (o *Operator) notify(ctx context.Context, payloads ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	pipeline := &pgx.Batch{}
	notify := o.sql.Get("notify")
	for _, payload := range payloads {
		pipeline.Queue(notify, o.schema.Channel(), payload)
	}
	_ = o.pool.SendBatch(ctx, pipeline).Close()
}

// Wake wakes the workers of endpoints in all processes. It is for messages that were written by other means, such as
// SQL. Names of endpoints that do not exist are ignored.
func (o *Operator) Wake(ctx context.Context, endpoints ...string) {
	known, err := o.routes.Get(ctx, o.pool)
	if err != nil {
		return // the poll finds the messages
	}
	var payloads []string
	for _, name := range endpoints {
		if q := known.Endpoints[name]; q != nil {
			payloads = append(payloads, strconv.Itoa(q.ID))
		}
	}
	if len(payloads) > 0 {
		o.notify(ctx, payloads...)
	}
}

// Outbox returns the store of the copies of relayed messages, with the retention of these copies and of the ids of the
// inbox. Replay sends copies again.
func (o *Operator) Outbox() *outbox.Store { return o.outbox }

// History returns the reader that finds messages, explains their state, and shows the timelines of instances.
func (o *Operator) History() *whereabouts.Reader { return o.history }
