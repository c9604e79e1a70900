package queue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

//go:embed routes.sql
var routesSQL string

// Router holds the newest routes that this process has read. Safe for concurrent use. See Set for the zero Router.
type Router struct {
	pool      *pg.Pool
	schema    pg.Schema
	sql       pg.Statements
	templates pg.Statements     // of the statements that name a queue
	overrides map[string]string // kind to endpoint
	current   atomic.Pointer[Routes]

	// Check, if not nil, is called before routes are read while the cache is empty. It is set before the first use.
	Check func(context.Context, pg.Queryer) error

	mu         sync.Mutex
	refreshing chan struct{} // closed when the running refresh has ended; guarded by mu, as is failure
	failure    error         // of the last refresh
}

// NewRouter returns a router over pool that has read nothing yet. Overrides name the endpoints of kinds that have
// several consumers.
func NewRouter(pool *pg.Pool, schema pg.Schema, overrides map[string]string) *Router {
	return &Router{
		pool: pool, schema: schema, sql: pg.Load(routesSQL, schema), templates: pg.Parse(text), overrides: overrides,
	}
}

// Set makes routes the current ones. A zero Router has no database: only Set changes its routes.
func (r *Router) Set(routes *Routes) { r.current.Store(routes) }

// Pipeliner is implemented by pgx's transactions and by a connection that is in one.
type Pipeliner interface {
	pg.Queryer
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Current returns the cached routes, or nil.
func (r *Router) Current() *Routes { return r.current.Load() }

// Forget drops the cached routes, so that the next use reads them again.
func (r *Router) Forget() { r.current.Store(nil) }

// Get returns the routes, and reads them if they are not cached.
func (r *Router) Get(ctx context.Context, q pg.Queryer) (*Routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	return r.Reload(ctx, q)
}

// within returns the routes for a caller that has a transaction open: the cached routes, or those read by the
// transaction if it is of the router's own database. Waiting for a second connection would never end if all
// connections, or all sessions of a pooler, belong to callers that wait in this way.
func (r *Router) within(ctx context.Context, tx Pipeliner) (*Routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	if !r.isOurs(tx) {
		return r.Aside(ctx)
	}
	return r.SeenBy(ctx, tx)
}

// isOurs reports whether a connection has the same server and database as the router's pool.
func (r *Router) isOurs(tx Pipeliner) bool {
	connected, ok := tx.(interface{ Conn() *pgx.Conn })
	if !ok {
		return false
	}
	theirs, ours := connected.Conn().Config(), r.pool.Config().ConnConfig
	return theirs.Host == ours.Host && theirs.Port == ours.Port && theirs.Database == ours.Database
}

// SeenBy returns the routes that a transaction reads. They may be old, or never be committed, so they are for this
// transaction only; the rest of the process gets the committed ones, in a moment.
func (r *Router) SeenBy(ctx context.Context, tx pg.Queryer) (*Routes, error) {
	seen, err := r.read(ctx, tx)
	if err != nil {
		return nil, err
	}
	if current := r.current.Load(); current == nil || current.Generation < seen.Generation {
		r.refresh(ctx)
	}
	return seen, nil
}

// Newest sends the batch, and returns the newest routes that tx reads after it. It returns ErrOtherDatabase if tx is
// not of the router's database and schema.
func (r *Router) Newest(ctx context.Context, tx Pipeliner, batch *pgx.Batch) (*Routes, error) {
	var (
		generation int64
		schemaID   string
	)
	batch.Queue(r.sql.Get("marks")).QueryRow(func(row pgx.Row) error { return row.Scan(&generation, &schemaID) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	known, err := r.within(ctx, tx)
	if err != nil {
		return nil, err
	}
	if known.SchemaID != schemaID {
		return nil, ErrOtherDatabase
	}
	if known.Generation != generation {
		return r.SeenBy(ctx, tx)
	}
	return known, nil
}

// QueueWait queues the lock that makes a new subscriber wait for this transaction. The lock may wait for a subscriber
// that is being added.
func (r *Router) QueueWait(batch *pgx.Batch, kind string) {
	batch.Queue(r.sql.Get("wait_generation"), kind)
}

// QueueCheck queues the same lock, without waiting, and after it the check that the routes are still the newest. They
// are two statements: a subscriber that is being added either waits for us, or the check finds its generation.
func (r *Router) QueueCheck(pipeline *pgx.Batch, known *Routes) {
	pipeline.Queue(r.sql.Get("lock_generation"))
	pipeline.Queue(r.sql.Get("check_generation"), known.Generation)
}

// refresh reads the routes on a connection of its own, concurrently with the caller, unless a refresh is running. The
// channel is closed when the refresh has ended.
func (r *Router) refresh(ctx context.Context) (done <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refreshing != nil {
		return r.refreshing
	}
	ended := make(chan struct{})
	r.refreshing = ended
	run.Detached(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
		defer cancel()
		err := r.reloadAside(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refreshing, r.failure = nil, err
		close(ended)
	})
	return ended
}

const (
	refreshTimeout = 10 * time.Second
	asideTimeout   = 2 * time.Second
)

func (r *Router) reloadAside(ctx context.Context) error {
	conn, err := pg.Dial(ctx, r.pool.Config())
	if err != nil {
		return fmt.Errorf("read the subscriptions: %w", pgerr.Explain(err))
	}
	defer pg.HangUp(ctx, conn)
	_, err = r.Reload(ctx, conn)
	return err
}

var errNoConnection = errors.New("read the subscriptions: no other connection was free in time: raise MaxConns")

// Aside returns the routes for a caller that has a transaction open which may be of another database. It waits only
// for a moment: the refresh continues to wait for a connection, and gets one at the latest when the transactions of
// the callers that gave up have ended.
func (r *Router) Aside(ctx context.Context) (*Routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	switch run.Wait(ctx, asideTimeout, r.refresh(ctx)) {
	case run.TimedOut:
		return nil, errNoConnection
	case run.Ended:
		return nil, fmt.Errorf("read the subscriptions: %w", context.Cause(ctx))
	}
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		return nil, errNoConnection // the cache was cleared at the same moment
	}
	return nil, r.failure
}

// Reload reads the routes for the whole process. q must read only committed rows. A zero Router reads nothing.
func (r *Router) Reload(ctx context.Context, q pg.Queryer) (*Routes, error) {
	if r.pool == nil {
		return r.Current(), nil
	}
	fresh, err := r.read(ctx, q)
	if err == nil {
		r.current.Store(fresh)
	}
	return fresh, err
}

func (r *Router) read(ctx context.Context, q pg.Queryer) (*Routes, error) {
	if r.Check != nil && r.Current() == nil {
		if err := r.Check(ctx, q); err != nil {
			return nil, err
		}
	}
	rows, err := q.Query(ctx, r.sql.Get("routes"))
	if err != nil {
		return nil, fmt.Errorf("read the subscriptions: %w", pgerr.Explain(err))
	}
	fresh := &Routes{
		Endpoints: map[string]*Queue{}, ByID: map[int]*Queue{}, Kinds: map[string][]*Queue{}, Overrides: r.overrides,
		Bases: map[string]string{},
	}
	var (
		id       *int
		endpoint *string
		relay    bool
		kind     *string
	)
	columns := []any{&fresh.Generation, &fresh.SchemaID, &id, &endpoint, &relay, &kind}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		if id == nil {
			return nil
		}
		q := fresh.ByID[*id]
		if q == nil {
			q = r.known(*id, *endpoint, relay)
			fresh.ByID[q.ID], fresh.Endpoints[q.Endpoint] = q, q
		}
		if kind != nil {
			fresh.Kinds[*kind] = append(fresh.Kinds[*kind], q)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the subscriptions: %w", pgerr.Explain(err))
	}
	for name := range fresh.Endpoints {
		if base, ok := fresh.base(name); ok {
			fresh.Bases[name] = base
		}
	}
	return fresh, nil
}

// known returns the cached queue, to keep the statements that were rendered before.
func (r *Router) known(id int, endpoint string, relay bool) *Queue {
	if old := r.current.Load(); old != nil {
		if q := old.ByID[id]; q != nil && q.Endpoint == endpoint && q.Relay == relay {
			return q
		}
	}
	return newQueue(r.schema, r.templates, id, endpoint, relay)
}
