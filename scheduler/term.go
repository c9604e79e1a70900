package scheduler

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
)

// ErrFenced means that the term is over and a later one has begun: the transaction is not committed.
var ErrFenced = lease.ErrFenced

// Term is one period in which a replica holds a lease. It is a context that ends before another replica can hold the
// lease: when the term is not renewed in time, when its holder is asked to resign, and at a shutdown. A process that
// was paused may notice the end too late, so use Guard or InTx for writes that must not happen twice. The methods of
// a Term are safe for concurrent use.
type Term interface {
	context.Context

	// Epoch returns the number of the term, which increases with each term of the lease. Send it to receivers outside
	// the database, and let them refuse smaller numbers.
	Epoch() int64

	// Guard makes tx a part of the term: until tx ends no other term begins. It returns ErrFenced if a later term has
	// begun. If the process pauses inside tx, no other term begins until the server ends the transaction: limit that
	// by idle_in_transaction_session_timeout, or use InTx, which sets it. In REPEATABLE READ and SERIALIZABLE call
	// Guard as the first statement: if the lease is renewed after the transaction's snapshot, Guard fails with
	// SQLSTATE 40001.
	Guard(ctx context.Context, tx pgx.Tx) error

	// InTx runs write in a guarded transaction, and commits it if write returns nil. The transaction is READ
	// COMMITTED, whatever the default of the session is. The server ends it if the process is silent for the time of
	// a Lease. InTx does not retry. It returns ErrFenced if a later term has begun.
	InTx(ctx context.Context, write func(tx pgx.Tx) error) error
}

// term is a Term of a Singleton.
type term struct {
	context.Context
	of *Singleton
	lease.Term
}

func (t *term) Epoch() int64 { return t.Term.Epoch }

func (t *term) Guard(ctx context.Context, tx pgx.Tx) error {
	return t.of.leases.Guard(ctx, tx, t.Term)
}

func (t *term) InTx(ctx context.Context, write func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, t.of.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(t.of.sql.Get("bound_idle"), strconv.FormatInt(t.of.options.Lease.Milliseconds(), 10)+"ms")
		t.of.leases.QueueGuard(b, t.Term)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("guard by lease %s, epoch %d: %w", t.Name, t.Epoch(), lease.Fenced(err))
		}
		return write(tx)
	})
}

// Swept describes the last pass of a Sweep.
type Swept struct {
	Every time.Duration
	Took  time.Duration
	Ended time.Time // zero if no pass has ended
}

// Sweep makes a function for NewSingleton that calls sweep at once when a term begins, and then each time every has
// passed since the start of the last call. An error of sweep ends the term, and the next holder of the lease
// continues. Health has the duration of the last call. A call that takes longer than every is logged, because the
// work has outgrown a single replica.
func Sweep(every time.Duration, sweep func(Term) error) func(Term) error {
	return func(t Term) error {
		if every <= 0 {
			return fmt.Errorf("a sweep every %v: want more than 0", every)
		}
		for t.Err() == nil {
			began := time.Now()
			err := sweep(t)
			if s, ok := t.(*term); ok {
				s.of.note(Swept{Every: every, Took: time.Since(began), Ended: time.Now()})
			}
			if err != nil {
				return err
			}
			_ = run.Sleep(t, time.Until(began.Add(every))) // the loop ends with the term
		}
		return nil
	}
}
