package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// queue is one endpoint's table and the statements that name it.
type queue struct {
	id       int
	endpoint string
	table    string
	relay    bool // a relay consumes it

	schema    pg.Schema
	templates pg.Statements                     // with :schema and :queue in them
	rendered  atomic.Pointer[map[string]string] // those that were used; a map is never changed
}

func (b *Bus) newQueue(id int, endpoint string, relay bool) *queue {
	return &queue{
		id: id, endpoint: endpoint, table: b.schema.Render(":schema.queue_" + strconv.Itoa(id)), relay: relay,
		schema: b.schema, templates: b.templates,
	}
}

// sql returns a statement for this queue. It is rendered at its first use: a process knows every queue of the schema
// and has something to do with a few of them.
func (q *queue) sql(name string) string {
	known := q.rendered.Load()
	if known != nil {
		if sql, ok := (*known)[name]; ok {
			return sql
		}
	}
	grown := map[string]string{name: q.schema.RenderWith(q.templates.Get(name), ":queue", q.table)}
	if known != nil {
		maps.Copy(grown, *known)
	}
	q.rendered.CompareAndSwap(known, &grown) // when another goroutine was faster, the next use renders it again
	return grown[name]
}

// to completes a statement that moves messages to another queue.
func (q *queue) to(target *queue, name string) string {
	return q.schema.RenderWith(q.templates.Get(name), ":queue", q.table, ":target", target.table)
}

// routes is who consumes what, as it stood in one generation of the subscriptions. It never changes.
type routes struct {
	generation int64
	schemaID   string
	endpoints  map[string]*queue
	byID       map[int]*queue
	kinds      map[string][]*queue
}

// router holds the newest routes this process has seen. Safe for concurrent use.
type router struct {
	bus       *Bus
	overrides map[string]string // kind to endpoint
	current   atomic.Pointer[routes]

	mu         sync.Mutex
	refreshing chan struct{} // closed when the refresh that goes on has ended; guarded by mu, as is failure
	failure    error         // of the last one
}

// rowQueryer is met by pgx's pools, connections and transactions.
type rowQueryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// get returns the routes, reading them if nobody has yet.
func (r *router) get(ctx context.Context, q rowQueryer) (*routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	return r.reload(ctx, q)
}

// within returns the routes for whoever has a transaction open: those that are known, or those that the transaction
// sees when it is of the bus's own database. To wait for another connection meanwhile would never end where all
// connections, or all sessions of a pooler, belong to those who wait so.
func (r *router) within(ctx context.Context, tx pipeliner) (*routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	if !r.isOurs(tx) {
		return r.aside(ctx)
	}
	return r.seenBy(ctx, tx)
}

// isOurs tells whether a connection goes where those of the bus's pool go.
func (r *router) isOurs(tx pipeliner) bool {
	connected, ok := tx.(interface{ Conn() *pgx.Conn })
	if !ok {
		return false
	}
	theirs, ours := connected.Conn().Config(), r.bus.pool.Config().ConnConfig
	return theirs.Host == ours.Host && theirs.Port == ours.Port && theirs.Database == ours.Database
}

// seenBy returns the routes as a transaction sees them. That may be old, or never be committed, so it is for this
// transaction only; the rest of the process gets what is committed, in a moment.
func (r *router) seenBy(ctx context.Context, tx rowQueryer) (*routes, error) {
	seen, err := r.read(ctx, tx)
	if err != nil {
		return nil, err
	}
	if current := r.current.Load(); current == nil || current.generation < seen.generation {
		r.refresh(ctx)
	}
	return seen, nil
}

// refresh reads the routes beside the caller, on a connection of its own, unless somebody does that. The channel is
// closed when it has ended.
func (r *router) refresh(ctx context.Context) (done <-chan struct{}) {
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

func (r *router) reloadAside(ctx context.Context) error {
	conn, err := pg.Dial(ctx, r.bus.pool.Config())
	if err != nil {
		return fmt.Errorf("read the subscriptions: %w", explain(err))
	}
	defer pg.HangUp(ctx, conn)
	_, err = r.reload(ctx, conn)
	return err
}

var errNoConnection = errors.New("read the subscriptions: no other connection was to be had in time")

// aside returns the routes for whoever has a transaction open that may be of another database. It waits for a moment
// only: the connection that it asked for goes on waiting, and gets its turn at the latest when the transactions of
// those who gave up have ended.
func (r *router) aside(ctx context.Context) (*routes, error) {
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	timer := time.NewTimer(asideTimeout)
	defer timer.Stop()
	select {
	case <-r.refresh(ctx):
	case <-timer.C:
		return nil, errNoConnection
	case <-ctx.Done():
		return nil, fmt.Errorf("read the subscriptions: %w", context.Cause(ctx))
	}
	if current := r.current.Load(); current != nil {
		return current, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		return nil, errNoConnection // they were forgotten in the same moment
	}
	return nil, r.failure
}

// reload reads the routes for the whole process. q sees what is committed, and nothing else.
func (r *router) reload(ctx context.Context, q rowQueryer) (*routes, error) {
	fresh, err := r.read(ctx, q)
	if err == nil {
		r.current.Store(fresh)
	}
	return fresh, err
}

func (r *router) read(ctx context.Context, q rowQueryer) (*routes, error) {
	rows, err := q.Query(ctx, r.bus.sql.Get("routes"))
	if err != nil {
		return nil, fmt.Errorf("read the subscriptions: %w", explain(err))
	}
	fresh := &routes{endpoints: map[string]*queue{}, byID: map[int]*queue{}, kinds: map[string][]*queue{}}
	var (
		id       *int
		endpoint *string
		relay    bool
		kind     *string
	)
	_, err = pgx.ForEachRow(rows, []any{&fresh.generation, &fresh.schemaID, &id, &endpoint, &relay, &kind},
		func() error {
			if id == nil {
				return nil
			}
			q := fresh.byID[*id]
			if q == nil {
				q = r.known(*id, *endpoint, relay)
				fresh.byID[q.id], fresh.endpoints[q.endpoint] = q, q
			}
			if kind != nil {
				fresh.kinds[*kind] = append(fresh.kinds[*kind], q)
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read the subscriptions: %w", explain(err))
	}
	return fresh, nil
}

// known keeps the statements that were rendered before.
func (r *router) known(id int, endpoint string, relay bool) *queue {
	if old := r.current.Load(); old != nil {
		if q := old.byID[id]; q != nil && q.endpoint == endpoint && q.relay == relay {
			return q
		}
	}
	return r.bus.newQueue(id, endpoint, relay)
}

// forget drops what is known, so that the next use reads it anew.
func (r *router) forget() { r.current.Store(nil) }

// command finds the one queue for a command of this kind; to, when given, wins over everything.
func (r *router) command(t *routes, kind, to string) (*queue, error) {
	if to == "" {
		to = r.overrides[kind]
	}
	if to != "" {
		if q := t.endpoints[to]; q != nil {
			return q, nil
		}
		return nil, fmt.Errorf("send %s to endpoint %.80q: %w: run that endpoint once, or install it (the command "+
			"is \"edda migrate install\")", kind, to, ErrNoRoute)
	}
	switch queues := t.kinds[kind]; len(queues) {
	case 1:
		return queues[0], nil
	case 0:
		return nil, fmt.Errorf("send %s: %w: run the endpoint that handles it once, or install it, or name one "+
			"with bus.Route or saga.To", kind, ErrNoRoute)
	default:
		names := make([]string, len(queues))
		for i, q := range queues {
			names[i] = q.endpoint
		}
		slices.Sort(names)
		if more := len(names) - namedMost; more > 0 {
			names = append(names[:namedMost], fmt.Sprint(more, " more"))
		}
		return nil, fmt.Errorf("send %s: %w (%s): name one with bus.Route or saga.To, or publish it", kind,
			ErrAmbiguous, strings.Join(names, ", "))
	}
}

// namedMost bounds how many endpoints an error names.
const namedMost = 10

// guess is where a message that the SQL function has sent is likely to be, for a nudge; it may be wrong.
func (t *routes) guess(r *router, out saga.Outgoing) []*queue {
	if out.Info.Intent == saga.Event && out.To == "" {
		return t.kinds[out.Info.Kind]
	}
	if q, err := r.command(t, out.Info.Kind, out.To); err == nil {
		return []*queue{q}
	}
	return nil
}

// consumes tells whether messages for d come through a queue, as far as this process knows.
func (r *router) consumes(queueID int, d *saga.Definition) bool {
	known := r.current.Load()
	if known == nil {
		return false
	}
	return slices.ContainsFunc(d.Kinds(), func(k saga.KindInfo) bool {
		return slices.ContainsFunc(known.kinds[k.Kind], func(q *queue) bool { return q.id == queueID })
	})
}

func explain(err error) error { return pg.Explain(err) }

func isNoRoute(err error) bool { return errors.Is(err, ErrNoRoute) }
