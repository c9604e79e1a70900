package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Errors that a caller can act on.
var (
	// ErrLost is the cause of the function's context when its term is over, or may be.
	ErrLost = errors.New("the lease is lost")
	// ErrResigned is the cause of the function's context when the holder was asked to resign.
	ErrResigned = errors.New("an operator or a process requested that the holder resigns the lease")
	// ErrRunning is returned if Run is called while a Run of the Keeper is active.
	ErrRunning = errors.New("the keeper is already running")
)

// Job is the work that one process at a time does.
type Job struct {
	Name string // name of the lease; see CheckName

	// Run is called for each term. It must return soon after ctx has ended, whose cause is the reason, and may return
	// before. Then the lease is released, and after an Acquire interval the Keeper bids again; an error is logged
	// first. t.Epoch is for Store.Guard, and for receivers outside the database that refuse smaller ones.
	Run func(ctx context.Context, t Term) error
}

// Keeper bids for a lease, and runs a function while it holds it. Wake and Holding are safe for concurrent use.
type Keeper struct {
	job      Job
	options  Options
	register register
	log      *slog.Logger

	wakeups run.Nudge  // has capacity 1
	running sync.Mutex // held by Run
	health  health
}

// register stores leases: in the database, except in tests of time.
type register interface {
	bid(ctx context.Context) (Term, bool, error) // a lost bid returns the other holder's term, if it was read
	renew(ctx context.Context, t Term) (Renewal, error)
	release(ctx context.Context, t Term) (bool, error)
	close(ctx context.Context)
}

// NewKeeper returns a Keeper. It does no I/O. pool only provides the configuration of connections.
func NewKeeper(pool *pgxpool.Pool, store *Store, job Job, o Options) (*Keeper, error) {
	o, err := o.withDefaults()
	if job.Run == nil {
		err = errors.Join(err, errors.New("Job.Run is nil"))
	}
	if err = errors.Join(CheckName(job.Name), err); err != nil {
		return nil, fmt.Errorf("new keeper of lease %.60q: %w", job.Name, err)
	}
	o.Holder = Identity(o.Holder)
	row := &row{store: store, db: o.DB, term: Bid{Name: job.Name, Holder: o.Holder, Lease: o.Lease}}
	if row.db == nil {
		row.line = NewLine(pool)
		row.db = row.line
	}
	return newKeeper(row, job, o), nil
}

func newKeeper(r register, job Job, o Options) *Keeper {
	return &Keeper{job: job, options: o, register: r, log: o.Logger.With("lease", job.Name),
		wakeups: run.NewNudge()}
}

// Wake makes a Keeper in standby bid in a moment, and a holder check whether it is asked to resign. Call it for the
// payload WakePrefix and the lease's name. It never blocks.
func (k *Keeper) Wake() { k.wakeups.Send() }

// Holding returns the term whose function is running now. It is for metrics: the term may be over by the time it
// returns.
func (k *Keeper) Holding() (t Term, ok bool) {
	h := k.Health()
	if h.State == Standby {
		return Term{}, false
	}
	return h.Term, true
}

// Run bids, and runs the job while it holds the lease, until ctx ends: then it stops the job, releases the lease, and
// returns nil. While the database is away, Run waits. It returns an error if it cannot continue: the role lacks a
// right, or the schema is not migrated. It never returns while the job runs.
func (k *Keeper) Run(ctx context.Context) error {
	if !k.running.TryLock() {
		return fmt.Errorf("keep lease %s: %w", k.job.Name, ErrRunning)
	}
	defer k.running.Unlock()
	defer k.register.close(ctx)
	for ctx.Err() == nil {
		held, err := k.try(ctx)
		if err != nil {
			return fmt.Errorf("keep lease %s: %w", k.job.Name, err)
		}
		k.standBy(ctx, held)
	}
	return nil
}

// try bids once, and if it wins, holds the lease until the term is over. A shutdown does not cancel a bid that has
// been sent: its answer shows whether there is a lease to release.
func (k *Keeper) try(ctx context.Context) (held bool, err error) {
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.options.Renew)
	defer cancel()
	since := time.Now()
	t, ok, err := k.register.bid(attempt)
	switch {
	case fatal(err):
		return false, err
	case err != nil:
		k.log.Warn("edda: a bid for a lease had no answer", "error", err)
		return false, nil
	case !ok:
		k.health.seen(t)
		k.log.Debug("edda: another process holds the lease", "self", k.options.Holder, "holder", t.Holder,
			"epoch", t.Epoch)
		return false, nil
	}
	k.hold(ctx, t, since)
	return true, nil
}

// fatal reports whether waiting does not cure err.
func fatal(err error) bool {
	class := pgerr.ClassOf(err)
	return class == pgerr.Denied || class == pgerr.Unprepared
}

const wakeSpread = 50 * time.Millisecond // so that Keepers that are woken together do not bid at the same moment

// standBy waits until the next bid. A Keeper that has just released the lease waits a full interval before it bids
// again, and ignores the notification of its own release.
func (k *Keeper) standBy(ctx context.Context, held bool) {
	wakeups := k.wakeups
	if held {
		wakeups = nil
	}
	if run.Wait(ctx, run.Jitter(k.options.Acquire), wakeups) == run.Nudged {
		_ = run.Sleep(ctx, rand.N(wakeSpread)) // the loop notices the end of ctx
	}
	if held {
		k.wakeups.Drop()
	}
}

// row is the register in the database.
type row struct {
	store *Store
	db    DB
	line  *Line // set if db is the Keeper's own
	term  Bid
	seen  sight // of the last bid
}

func (r *row) bid(ctx context.Context) (Term, bool, error) {
	return r.store.bid(ctx, r.db, r.term, &r.seen)
}

func (r *row) renew(ctx context.Context, t Term) (Renewal, error) {
	return r.store.Renew(ctx, r.db, t, r.term.Lease)
}

func (r *row) release(ctx context.Context, t Term) (bool, error) {
	return r.store.Release(ctx, r.db, t)
}

func (r *row) close(ctx context.Context) {
	if r.line != nil {
		r.line.Close(ctx)
	}
}
