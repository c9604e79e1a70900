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

// ErrFenced says that the term is over and another has begun: the transaction is not committed.
var ErrFenced = lease.ErrFenced

// Term is one replica's time with a lease. It is a context that ends before another replica can hold the lease: when
// the term is not renewed in time, when its holder is asked to resign, and at a shutdown. A process that was paused may
// see the end too late, so guard in the database what must not happen twice. Its methods are safe for concurrent use.
type Term interface {
	context.Context

	// Epoch is the number of the term, which grows with each term of the lease: give it to receivers outside the
	// database, and let them refuse smaller ones.
	Epoch() int64

	// Guard makes tx a part of the term: until tx ends no other term begins. ErrFenced if another has begun. If the
	// process is paused meanwhile, no other term begins until the server ends the transaction: bound that by
	// idle_in_transaction_session_timeout, or use InTx, which does. In REPEATABLE READ and SERIALIZABLE call Guard
	// first: a renewal of the lease after the transaction's snapshot is the error 40001.
	Guard(ctx context.Context, tx pgx.Tx) error

	// InTx runs write in a guarded transaction, and commits it if write returns nil. The transaction is READ COMMITTED,
	// whatever your default is. The server ends it if its process is silent for a lease. Nothing is tried again.
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
	Ended time.Time // zero: none has ended
}

// Sweep makes a function for NewSingleton that calls sweep at intervals: at once when a term begins, and then whenever
// every has passed since the last call began. An error ends the term, and the next holder of the lease continues.
// Health has the time that a call took. A call that takes longer than every is logged, because the work has outgrown a
// single replica.
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
			_ = run.Sleep(t, time.Until(began.Add(every))) // the loop sees the end of the term
		}
		return nil
	}
}
