package outbox

import (
	"context"
	_ "embed"
	"log/slog"
	"strconv"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

//go:embed relay.sql
var relayStatements string

// Border carries messages into the database and out of it: with its relays, Ingest and Replay. A bus makes one. It is
// safe for concurrent use.
type Border struct {
	BorderOptions
	sql  pg.Statements
	calm *slog.Logger // for work that is retried; hides most warnings while the database is away
}

// BorderOptions configure a Border. All fields are required, unless marked otherwise.
type BorderOptions struct {
	Pool     *pg.Pool
	Schema   pg.Schema
	Store    *Store
	History  history.Keeper
	Routes   *queue.Router
	Hub      *wake.Hub
	Notifier *wake.Notifier
	Leases   *lease.Store
	Letters  *deadletter.Store
	Process  Process
	Runs     *runs.Store
	Settings func(relay string, poll time.Duration) *settings.Follower
	Log      *slog.Logger
	Outage   *pg.Outage
	Events   func(...event.Event)
	Hooks    handlers.Hooks // optional

	AutoInstall bool // relays create their queues
	PollOnly    bool // without LISTEN
}

// Process provides the parts of a process that relays share with its endpoints and schedulers.
type Process interface {
	// Join announces that this process consumes a queue, and runs the services of the process, until leave is called.
	// left returns how many functions of the program have not returned.
	Join(ctx context.Context, queue int, left func() int) (leave func(), err error)
	// OpenPool opens a pool like an endpoint's. The server ends a transaction in it after idle without a statement.
	OpenPool(ctx context.Context, idle time.Duration) (*pg.Pool, error)
	// CheckPool returns an error if there is a pooler in front of Postgres and PollOnly is not set.
	CheckPool(ctx context.Context, idle time.Duration) error
}

// NewBorder returns a Border that does nothing yet.
func NewBorder(o BorderOptions) *Border {
	return &Border{BorderOptions: o, sql: pg.Load(relayStatements, o.Schema), calm: o.Outage.Logger(o.Log)}
}

// commitTimeout bounds a write and its COMMIT, which a shutdown does not cancel.
const commitTimeout = 30 * time.Second

// betweenStatements returns the longest time that the server waits for the next statement of a transaction that runs
// no user function, because other transactions may wait for its locks. The server counts until it has read the whole
// statement, so the bound is five seconds plus one for each MiB of the largest statement, at most commitTimeout.
func betweenStatements(bytes int) string {
	most := 5*time.Second + time.Duration(bytes>>10)*time.Second/1024
	return strconv.FormatInt(min(most, commitTimeout).Milliseconds(), 10) + "ms"
}

// newID makes a UUIDv7, so that consecutive ids are neighbours in an index.
func newID() saga.ID {
	id, err := uuid.NewV7()
	if err != nil { // the system has no random numbers left: nothing can continue
		panic("outbox: " + err.Error())
	}
	return saga.ID(id)
}
