package bus

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// batch is one transaction of a worker: it takes messages, and ends them with everything that follows from them. It
// belongs to the worker's goroutine, which uses its memory again for the next one.
type batch struct {
	decoder
	effects
	scratch

	bytes int         // of the rows that the take has locked
	large queue.Large // among them

	foundLast queue.Position // the last row that the take has locked

	byID       bool            // a message names its instance by id
	stepCtx    context.Context // of the steps that run now, see stepContext
	endStepCtx context.CancelFunc
	stepSince  time.Time
	turned     holderWait    // for a worker of this process
	waited     holderWait    // for another process
	trouble    bool          // a smaller batch may go better
	convicts   bool          // trouble has condemned one of its messages
	permit     *limit.Permit // under the endpoint's limit; nil when it has none
	slow       bool          // one message at a time: none is tried twice in this batch
	shared     sharedTx
	touched    bool             // somebody had one of its messages in hand before
	entered    saga.ID          // its row in the crash ledger, see careful.go
	suspects   []queue.Position // that were taken out of it
	outrun     bool             // others took its messages while it was entered into the ledger
}

// process is one batch, from the take to what follows the commit. Every message it took has, when it
// returns without an error, met its fate in one committed transaction; after an error the transaction is gone
// and every message is where it was.
func (b *batch) process(ctx context.Context, o order) (report, error) {
	defer b.ep.memory.release(b)
	err := b.run(ctx, o)
	switch {
	case errors.Is(err, errRehearsed):
		b.abandon(ctx)
		b.trouble, b.convicts = true, true
	case err != nil:
		b.abandon(ctx)
		b.blame(err)
		err = b.refuseLent(ctx, err)
		if len(b.messages) > 0 {
			b.ep.bus.emit(BatchFailed{Endpoint: b.ep.name, Taken: len(b.messages), Err: err})
		}
	}
	b.count(err)
	return b.report(err), err
}

// errRehearsed ends a transaction that wrote the failure of a message and took it back. Trouble has condemned the
// message, but an outage that ended since then looks the same. The database takes failures now: what the next step
// meets is the message's own doing.
var errRehearsed = errors.New("the failure of the message was rehearsed")

var errExited = errors.New("the handler ended its goroutine: runtime.Goexit, or FailNow of package testing")

// exited is the end of a batch in which a function of the user ended the goroutine. The message in hand has failed, and
// is judged when it is taken again.
func (b *batch) exited(ctx context.Context) report {
	b.abandon(ctx)
	b.trouble = true
	if b.inHand != nil {
		b.ep.memory.condemn(b.inHand.ID, errExited)
	}
	b.ep.bus.emit(BatchFailed{Endpoint: b.ep.name, Taken: len(b.messages), Err: errExited})
	b.count(errExited)
	return b.report(errExited)
}

func (b *batch) run(ctx context.Context, o order) error {
	if err := b.take(ctx, o); err != nil || len(b.messages) == 0 {
		return err
	}
	if err := b.beCareful(ctx, o); err != nil || len(b.messages) == 0 {
		return err
	}
	b.prepareTurn(ctx)
	b.decode()
	if err := b.ep.strategy.decide(ctx, b); err != nil {
		return err
	}
	return b.commit(ctx)
}

// strategy is what an endpoint does with the decoded messages of a batch. It is chosen when the endpoint is built.
type strategy interface {
	decide(ctx context.Context, b *batch) error                     // the fate of each message
	queue(b *batch, pipeline *pgx.Batch, known *queue.Routes) error // what only this strategy writes
	// handlers run, so that a message may kill its process
	handles() bool
}

// handling has each message handled.
type handling struct{}

func (handling) decide(ctx context.Context, b *batch) error {
	if err := b.checkRuns(ctx); err != nil {
		return err
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	return b.step(ctx)
}

func (handling) queue(*batch, *pgx.Batch, *queue.Routes) error { return nil }
func (handling) handles() bool                                 { return true }

// commit writes what was decided, and ends the transaction.
func (b *batch) commit(ctx context.Context) error {
	if b.nothingToWrite() {
		b.abandon(ctx)
		return nil
	}
	// From here on a shutdown does not interrupt: the outcome of a COMMIT that was cancelled is unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := b.shared.takeBackNow(ctx, b.shared.takeBack); err != nil {
		return err
	}
	if err := b.saveInstances(ctx); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	b.after(ctx)
	return nil
}

func (b *batch) nothingToWrite() bool {
	for _, m := range b.messages {
		if m.fate != fateLeft {
			return false
		}
	}
	return true
}

// abandon ends the transaction without effect.
func (b *batch) abandon(ctx context.Context) {
	defer b.leaveLedger(ctx)
	rollback(ctx, b.ep, b.conn)
}

// rollback ends the transaction of conn, if it has one open.
func rollback(ctx context.Context, e *Endpoint, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		e.bus.log.Debug("edda: rollback", "endpoint", e.name, "error", err)
	}
}

// blame decides what the next batches do differently after this one was lost: they are smaller, until a message that
// always loses its batch is alone in it. A connection that was lost before anything was taken says nothing about
// batches.
func (b *batch) blame(err error) {
	class := pg.ClassOf(err)
	// somebody subscribed, or a queue was dropped: our routes are old
	if class == pg.GuardFailed || class == pg.Unprepared {
		b.ep.bus.routes.Forget()
	}
	if class == pg.GuardFailed || class == pg.Lost && len(b.messages) == 0 {
		return
	}
	b.trouble = true
	if len(b.messages) == 1 {
		b.blameOne(b.messages[0], class, err)
	}
}

// blameOne holds an error against a message that was alone in its batch. Where the server refused what the batch wrote,
// nobody else can be guilty. An error that a database in trouble gives as well counts, and makes a failure of the
// message when it has come back often enough.
func (b *batch) blameOne(m *message, class pg.Class, err error) {
	switch {
	case m.judged:
		b.ep.memory.acquit(m.ID)
	case m.charged:
	case guilty(class, err), b.shared.savepoint > 0 && tampered(class):
		b.ep.memory.condemn(m.ID, err)
	case doubtful(class, err):
		b.chargeTrouble(m, err)
	}
}

// guilty reports whether an error is the fault of the only message of its transaction.
func guilty(class pg.Class, err error) bool {
	return (class == pg.Other || class == pg.AbortedAlready) && pg.Code(err) != ""
}

// doubtful reports whether an error is either the fault of the only message of its transaction or that of a database
// which is slow, full or away. Locks and races are of neither kind: another transaction has won, and has what it
// wanted.
func doubtful(class pg.Class, err error) bool {
	switch class {
	case pg.Cancelled, pg.IdleKilled, pg.Exhausted, pg.Lost, pg.ReadOnly, pg.Unprepared:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) // the write took longer than commitTimeout
}

func (b *batch) report(err error) report {
	r := b.effects.report(err)
	r.late, r.failed, r.permit, r.outrun = b.late || b.cut, b.trouble, b.permit, b.outrun
	return r
}
