package message

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Recipient has the properties and dependencies of the endpoint that consumes a message, for one Run.
type Recipient struct {
	Name     string
	Queue    *queue.Queue
	Handlers *handlers.Table
	Options  Options
	Memory   *contention.Memory
	Handled  *atomic.Int64 // messages, since Run began

	Pool     *pg.Pool // for handlers that have no connection
	Codec    saga.Codec
	NewID    func() saga.ID
	Log      *slog.Logger
	Calm     *slog.Logger // for warnings about work that is retried: drops most of them while the database is away
	Routes   *queue.Router
	Sent     *dedup.Store
	Letters  *deadletter.Store
	Settings *settings.Store
	History  history.Keeper
	Keeps    func() history.Options // which parts of the history are kept now
	Runs     *runs.Store
	Notifier *wake.Notifier
	Hooks    handlers.Hooks
}

// Options are the EndpointOptions that concern one message.
type Options struct {
	BatchTime          time.Duration // time limit of decoding a batch
	StepTimeout        time.Duration
	Decoding           time.Duration // time limit of decoding one message, with its key and its Accepts
	UnknownKindTimeout time.Duration
	Policy             recoverability.Policy
	ConflictPolicy     recoverability.Policy
	Judges             *Judges    // calls both, and the methods of errors
	Calls              *run.Calls // records the functions of the user that run for single messages; may be nil
}

// patience returns how long a policy, or a method of an error, may take.
func (o *Options) patience() time.Duration { return cmp.Or(o.Decoding, handlers.Patience) }

// WakeForNext sets the timer of a for the first message that was not yet due at since. since is when the transaction
// that has found no message began, by the database's clock.
func (r *Recipient) WakeForNext(ctx context.Context, conn *pgx.Conn, a *wake.Alarm, since time.Time) {
	ctx, cancel := context.WithTimeout(ctx, contention.AnswerTimeout)
	defer cancel()
	var wait time.Duration
	err := conn.QueryRow(ctx, r.Queue.SQL("next_due"), since).Scan(&wait)
	switch {
	case err == nil:
		a.WakeAt(time.Now().Add(wait))
	case !errors.Is(err, pgx.ErrNoRows):
		r.Log.Debug("edda: the next due message was not read", "endpoint", r.Name, "error", err)
	}
}
