package leased

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// Terms are the dependencies and options that all parts of one Run of a leased endpoint share. They do not change
// while Run runs.
type Terms struct {
	To      *message.Recipient
	Pool    *pg.Pool // of three connections: one claims, one finishes, one extends leases
	Options Options
	Session *membership.Session
	Limit   limit.Known
	Breaker *contention.Breaker
	Alarm   *wake.Alarm
	Hub     *wake.Hub

	owner [16]byte // of this Run, in lanes and slots; rows of the queue name the session
	bound string   // a little less than patience, as Postgres reads it: its error comes before the end of a context
}

// Options are the options of the endpoint.
type Options struct {
	Concurrency, BatchMax, BatchBytes, MaxCrashes int
	StepTimeout, Lease, Poll, Drain               time.Duration

	Ordered bool // messages of one key are handled one after the other
	Strict  bool // and the next one waits for the retry of a failed one

	Notifies bool // processes that wait for slots listen
}

func (t *Terms) begin() {
	t.owner = t.To.NewID()
	t.bound = fmt.Sprint((t.patience() * 3 / 4).Milliseconds(), " ms")
}

// trustedFor returns how long a claim is trusted after the last extension.
func (t *Terms) trustedFor() time.Duration {
	lease := t.Options.Lease
	return lease - lease/trustMargin
}

// patience bounds the waits in a transaction of this endpoint: for a lock, or for the next statement of a process
// that stalls. It is as long as the time between two extensions, so no lease of a different process ends because of
// it.
func (t *Terms) patience() time.Duration {
	return min(contention.CommitTimeout, t.Options.Lease/beatsPerLease)
}

// open returns the statements that begin a transaction. Other transactions wait for it no longer than patience.
func (t *Terms) open() *pgx.Batch { return t.openAt(nil) }

// openAt is open, and reads the begin of the transaction into now, by the database's clock.
func (t *Terms) openAt(now *time.Time) *pgx.Batch {
	pipeline := &pgx.Batch{}
	pipeline.Queue(queue.Begin)
	queue.OpenLeased(pipeline, t.bound, now)
	return pipeline
}

func (t *Terms) rollback(ctx context.Context, conn *pgx.Conn) {
	contention.Rollback(ctx, conn, t.To.Log, t.To.Name)
}

// session returns the owner of claims. With it, others can find out whether the process that had a claim has died.
func (t *Terms) session() [16]byte { return t.Session.ID }

// holder names this Run in the slots of limits: its process, and an id of the Run within the process.
func (t *Terms) holder() string { return limit.HolderOf(t.Session.ID, t.owner) }
