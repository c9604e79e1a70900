package bus

import (
	"context"
	"errors"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// batch is the messages that one worker handles in one transaction. It belongs to the worker's goroutine, which
// uses its memory again for the next one.
type batch struct {
	*Endpoint
	scratch
	conn *pgx.Conn

	begun time.Time // this process's clock, just before the transaction began
	now   time.Time // the database's clock when it had begun
	xact  string    // the transaction that took, when handlers may end it

	bytes int         // of the rows that the take has locked
	large queue.Large // among them

	found     int            // rows that the take has locked, with those for which there was no memory
	foundLast queue.Position // the last of them

	byID       bool       // a message names its instance by id
	forget     []saga.ID  // ids that were claimed for messages which are not sent after all
	userReady  bool       // the transaction is as a user's handler expects it
	hurried    bool       // its lock_timeout is that of handlers who share it
	savepoint  int        // savepoints of this transaction; 0 while no handler has run a statement in it
	stepOpen   bool       // that of the last step is there
	inHand     *message   // that a function of the user is called for
	altered    alteration // of settings, by a handler, that is not taken back yet
	wakes      []wakeAfter
	retried    []failedAttempt // each repeated in this batch
	lent       saga.Runtime
	stepCtx    context.Context // of the steps that run now, see stepContext
	endStepCtx context.CancelFunc
	stepSince  time.Time
	save       *persistence.Save // still to be queued by write
	turned     holderWait        // for a worker of this process
	waited     holderWait        // for another process
	trouble    bool              // a smaller batch may go better
	convicts   bool              // trouble has condemned one of its messages
	rehearses  bool              // it writes a failure and takes it back, see errRehearsed
	ended      bool              // its messages are deleted already, see finish.go
	also       func(*pgx.Batch)  // queues what becomes of lanes and slots, before the COMMIT
	seat       *limit.Seat       // under the endpoint's limit; nil when it has none
	late       bool              // it begins no more steps
	cut        bool              // the last messages that it took were left before any step began
	slow       bool              // one message at a time: none is tried twice in this batch
	failures   int               // failed attempts, but for conflicts
	failure    error             // the last of them
	pausing    *message          // whose policy pauses the endpoint
	paused     bool              // it did: nobody else held the row
	touched    bool              // somebody had one of its messages in hand before
	fired      bool              // messages of it have runs, see runs.go
	ending     []*instance       // that complete, and began with a run
	entered    saga.ID           // its row in the crash ledger, see careful.go
	suspects   []queue.Position  // that were taken out of it
	outrun     bool              // others took its messages while it was entered into the ledger
}

// process is one batch, from the take to what follows the commit. Every message it took has, when it
// returns without an error, met its fate in one committed transaction; after an error the transaction is gone
// and every message is where it was.
func (b *batch) process(ctx context.Context, o order) (report, error) {
	defer b.memory.release(b)
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
			b.bus.emit(BatchFailed{Endpoint: b.name, Taken: len(b.messages), Err: err})
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
		b.memory.condemn(b.inHand.ID, errExited)
	}
	b.bus.emit(BatchFailed{Endpoint: b.name, Taken: len(b.messages), Err: errExited})
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
	if b.partitions != nil { // its messages are for other queues, see distribute.go
		if err := b.distribute(ctx); err != nil {
			return err
		}
		if err := b.checkRuns(ctx); err != nil {
			return err
		}
		return b.commit(ctx)
	}
	if err := b.checkRuns(ctx); err != nil {
		return err
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	if err := b.step(ctx); err != nil {
		return err
	}
	return b.commit(ctx)
}

// commit writes what was decided, and ends the transaction.
func (b *batch) commit(ctx context.Context) error {
	if b.nothingToWrite() {
		b.abandon(ctx)
		return nil
	}
	// From here on a shutdown does not interrupt: the outcome of a COMMIT that was cancelled is unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := b.takeBackNow(ctx, b.takeBack); err != nil {
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
		if m.fate != left {
			return false
		}
	}
	return true
}

// abandon ends the transaction without effect. A connection that is gone has done that by itself.
func (b *batch) abandon(ctx context.Context) {
	defer b.leaveLedger(ctx)
	rollback(ctx, b.Endpoint, b.conn)
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
		b.bus.routes.Forget()
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
		b.memory.acquit(m.ID)
	case m.charged:
	case guilty(class, err), b.savepoint > 0 && tampered(class):
		b.memory.condemn(m.ID, err)
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
	r := report{taken: len(b.messages), late: b.late ||
		b.cut, failed: b.trouble, seat: b.seat, failures: b.failures, failure: b.failure, outrun: b.outrun}
	for _, m := range b.messages {
		switch {
		case err != nil:
		case m.fate != left:
			r.handled++
			if m.fate == done || m.fate == dropped && m.err == nil {
				r.done++
			}
		case m.instance != nil && (m.instance.status == busyHere || m.instance.status == busyThere):
			r.busy++
		}
	}
	return r
}

// clock is an upper bound of the database's clock: what counts from it is never early.
func (b *batch) clock() time.Time { return b.now.Add(time.Since(b.begun)) }

// turn is what a step of m is lent. There is one for the whole batch, since steps run one after another.
func (b *batch) turn(m *message) *saga.Runtime {
	b.lent.In = m.delivery
	return &b.lent
}

// prepareTurn sets what is the same for all steps of the batch.
func (b *batch) prepareTurn(ctx context.Context) {
	b.lent = saga.Runtime{
		Now: b.now, Clock: b.clock, NewID: newID, Codec: b.bus.codec, Endpoint: b.name,
		Admit: func(out *saga.Outgoing) error { return b.admit(ctx, out) },
	}
}
