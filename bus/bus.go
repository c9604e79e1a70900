package bus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/engine/watch"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed statements.sql
var statements string

// Bus holds the state that the endpoints and senders of a process share: the pool, the schema, the routes, the codec
// and the wake-up of workers. A process that only sends needs a Bus and no endpoint. A Bus is safe for concurrent use.
type Bus struct {
	pool    *pg.Pool
	schema  pg.Schema
	sql     pg.Statements
	codec   saga.Codec
	log     *slog.Logger
	outage  *pg.Outage
	calm    *slog.Logger // for work that is tried again; hides most warnings while the database is away
	hooks   hooks
	wakeup  Wakeup
	tables  tables
	sender  sender
	border  *outbox.Border
	routes  *queue.Router
	hub     *wake.Hub
	session *membership.Session
	watches *watch.Set
	cleaner *cleaner

	notifier    *wake.Notifier
	autoInstall bool
}

// tables holds the store of each table.
type tables struct {
	counters *counters.Store
	settings *settings.Store
	runs     *runs.Store
	sagas    *persistence.Store
	letters  *deadletter.Store
	audit    *audit.Store
	sent     *dedup.Store
	limits   *limit.Store
	leases   *lease.Store
	rings    *ring.Store
	history  history.Keeper
}

func openTables(schema pg.Schema) tables {
	return tables{
		counters: counters.New(schema), settings: settings.New(schema), runs: runs.New(schema),
		sagas: persistence.New(schema), letters: deadletter.New(schema), sent: dedup.New(schema),
		audit:  audit.New(schema),
		limits: limit.New(schema), leases: lease.New(schema),
		rings: ring.New(schema), history: history.Keeper{Store: history.New(schema), Host: lease.Identity("")},
	}
}

// Options are the options of a Bus. The zero value of every field is a default.
type Options struct {
	Schema string       // "" is "edda"
	Routes []Routing    // for kinds that no endpoint, or several, of this database consume
	Codec  saga.Codec   // of message bodies; nil is JSON
	Logger *slog.Logger // nil is slog.Default()
	// Events is called after the commit that makes the event true; it must not block. A panic is logged, and so is a
	// call that ends its goroutine or does not return within 5 s. Until such a call has returned, there are no more
	// calls, and events are dropped.
	Events func(event.Event)
	// Rare receives the same events as Events, except Handled. It spares a program that counts failures and batches
	// the cost of an event for each message.
	Rare   func(event.Event)
	Wakeup Wakeup

	// Middleware returns the middleware that is outside of all other middleware of an endpoint, or nil; see Use. It
	// is called once for each endpoint and each partition, when the endpoint or the partition is made.
	Middleware func(endpoint string) Middleware
	// Outgoing is called for each message that this bus, or a handler of its endpoints, is about to write: commands,
	// events, answers, timeouts, raw messages, and messages that Ingest takes in. It is not called for attempts that
	// follow a failure or for a dead letter that is retried: they keep their headers. ctx is that of the caller or of
	// the handler. Outgoing sets headers with i.AddHeader. A header that the sender has set keeps its value, and
	// other changes of i have no effect. If Outgoing panics, or adds a header that saga.WithHeader would refuse, the
	// send returns an error; in a handler the panic is a failure of the attempt, like a panic of the handler. Ingest
	// then takes the message in without the headers, and logs that. Outgoing must not block, and must not keep i.
	// Programs that send with the SQL functions set headers themselves.
	Outgoing func(ctx context.Context, i *saga.Info)
	// Around is called around one transaction: a batch of an endpoint, from the take to the work that follows the
	// commit; a finish of a leased endpoint; a pass of a relay. It calls run once, in the goroutine that called it,
	// with ctx or a context derived from it; the handlers of a batch and a relay's forward get that context.
	// t.Messages and t.Err are set when run has returned. Around cannot change the result: if it panics, or does not
	// call run within 5 s, the transaction runs without it, and the failure is logged. See event.Transaction.
	Around func(ctx context.Context, t *event.Transaction, run func(context.Context))

	// AutoInstall lets Run create the endpoint's queue, which needs the right to create tables. Without AutoInstall,
	// Run of an endpoint that was never installed fails with ErrNotInstalled.
	// endpoint that was never installed fails with ErrNotInstalled.
	AutoInstall bool

	// History determines which history endpoints keep, unless EndpointOptions.History or an operator determines
	// otherwise. The zero value is history.Default.
	History history.Options

	// Redact returns the text that the history keeps of the body of a message, or of the state of a saga, given its
	// kind or the saga's name; if it returns nil, the history keeps no text. It receives the text without the fields
	// that the struct tag edda:"secret" marks, and is called within the batch: it must not block. If it panics, ends
	// its goroutine or does not return within 5 s, the history keeps no text. If Redact is nil, the history keeps the
	// whole text.
	Redact func(kind string, text []byte) []byte

	// NotifyInTx puts the wake-up of SendTx and PublishTx into the caller's transaction. Postgres then commits all such
	// transactions of the server one at a time: with 32 clients, 13,100 transactions a second became 4,450. Without
	// NotifyInTx a worker in a different process is woken 1 to 100 ms after the call, or finds the message at its next
	// poll.
	NotifyInTx bool
}

// Wakeup selects how workers of other processes are notified of new messages before their next poll.
type Wakeup uint8

// The ways to wake up.
const (
	Notify   Wakeup = iota // LISTEN and NOTIFY
	PollOnly               // for PgBouncer in transaction mode, where LISTEN does not work
)

// Routing sends commands of one kind to one endpoint. See Route.
type Routing struct{ Kind, Endpoint string }

// Route sends commands of kind M to endpoint, even if other endpoints consume them too.
func Route[M saga.Message](endpoint string) Routing {
	var zero M
	return Routing{Kind: zero.Kind(), Endpoint: endpoint}
}

// Database returns the pool and the schema of the bus, for code that works on the same tables.
func (b *Bus) Database() (pool *pgxpool.Pool, schema string) { return b.pool.Pool, b.schema.Name() }

// New makes a Bus over pool. It does no I/O. It returns an error if pool is nil, if the schema or a route has an
// invalid name, if the history options are invalid, or if the pool uses the exec or the simple protocol, or caches no
// descriptions.
func New(pool *pgxpool.Pool, o Options) (*Bus, error) {
	if pool == nil {
		return nil, fmt.Errorf("new bus: the pool is nil")
	}
	switch mode := pool.Config().ConnConfig.DefaultQueryExecMode; mode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return nil, fmt.Errorf("new bus: the pool's default_query_exec_mode is %v, which sends parameters "+
			"without their types: leave it out, or use cache_describe behind a PgBouncer", mode)
	}
	if pool.Config().ConnConfig.DescriptionCacheCapacity == 0 {
		return nil, errors.New("new bus: the pool's description_cache_capacity is 0, and rare statements need " +
			"a cached description: leave it out, or set 128")
	}
	schema, err := pg.ParseSchema(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("new bus: %w", err)
	}
	b := &Bus{
		pool: pg.Committed(pool), schema: schema, codec: o.Codec, log: handlers.Logger(o.Logger), wakeup: o.Wakeup,
		autoInstall: o.AutoInstall,
	}
	if err := o.History.Check(); err != nil {
		return nil, fmt.Errorf("new bus: %w", err)
	}
	b.tables = openTables(b.schema)
	b.tables.history.Redact = o.Redact
	b.tables.history.General = o.History.Or(history.Default)
	if b.codec == nil {
		b.codec = saga.JSON
	}
	b.outage = pg.NewOutage(b.log)
	b.calm = b.outage.Logger(b.log)
	b.hooks.Receivers = handlers.Receivers{Events: o.Events, Rare: o.Rare, Log: b.log}
	b.hooks.middleware = o.Middleware
	b.hooks.Hooks = handlers.Hooks{Outgoing: o.Outgoing, Around: handlers.NewAround(o.Around, b.log)}
	if err := b.prepare(o.Routes); err != nil {
		return nil, fmt.Errorf("new bus: %w", err)
	}
	b.sender = sender{pool: b.pool, sql: b.sql, codec: b.codec, routes: b.routes, sent: b.tables.sent,
		notifier: b.notifier, notifyInTx: o.NotifyInTx, outgoing: o.Outgoing}
	return b, nil
}

func (b *Bus) prepare(routing []Routing) error {
	b.sql = pg.Load(statements, b.schema)
	overrides := map[string]string{}
	for _, r := range routing {
		if err := saga.CheckName(r.Kind); err != nil {
			return fmt.Errorf("route: kind %.80q: %w", r.Kind, err)
		}
		if err := saga.CheckName(r.Endpoint); err != nil {
			return fmt.Errorf("route of %s: endpoint %.80q: %w", r.Kind, r.Endpoint, err)
		}
		overrides[r.Kind] = r.Endpoint
	}
	b.routes = queue.NewRouter(b.pool, b.schema, overrides)
	b.routes.Check = fits(b.schema)
	b.watches = watch.New(watch.Options{Pool: b.pool, Sagas: b.tables.sagas, Log: b.calm, Consumes: consumes(b.routes)})
	b.hub = wake.NewHub(b.watches.Sent)
	b.notifier = wake.NewNotifier(b.pool, b.schema, b.hub, b.log, b.wakeup == PollOnly)
	b.border = b.newBorder()
	b.session = membership.New(membership.Options{
		Pool: b.pool, Schema: b.schema, Routes: b.routes, Hub: b.hub, Notifier: b.notifier, Log: b.log, Calm: b.calm,
		Outage: b.outage, NewID: newID, PollOnly: b.wakeup == PollOnly,
	})
	b.cleaner = newCleaner(b)
	return nil
}

// newID makes a UUIDv7, so that consecutive ids are neighbours in an index.
func newID() saga.ID {
	id, err := uuid.NewV7()
	if err != nil { // the system has no random numbers left: no send can succeed
		panic("bus: " + err.Error())
	}
	return saga.ID(id)
}
