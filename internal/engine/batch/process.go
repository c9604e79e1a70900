package batch

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/outcome"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// batch is one transaction of a worker: it takes messages, and ends them with all their effects. It belongs to the
// worker's goroutine, which reuses its memory for the next batch. Each part has one job, and the parts share the
// decoder, which has the messages and the connection.
type batch struct {
	engine  *Engine
	in      message.Decoder
	taker   taker
	journal journal
	loader  loader
	stepper stepper
	shared  sharedTx
	saver   saver
	effects outcome.Effects
	history *outcome.Historian
	blame   blame
	failing bool // it committed failures and no success
}

// newBatch makes a worker's batch.
func newBatch(e *Engine) *batch {
	b := &batch{engine: e, history: outcome.NewHistorian(e.To)}
	in := &b.in
	b.in = message.Decoder{Tally: message.Tally{To: e.To}, Reclaim: b.shared.takeBackSettings}
	b.taker = taker{engine: e, in: in}
	b.loader = loader{engine: e, in: in, find: map[contention.Handle]*contention.Instance{}}
	b.stepper = stepper{engine: e, in: in, loader: &b.loader, shared: &b.shared, blame: &b.blame}
	b.saver = saver{engine: e, in: in, loader: &b.loader, shared: &b.shared, effects: &b.effects, history: b.history}
	return b
}

// begin prepares the batch for a transaction on conn. hand calls the functions of the user. Data of the previous batch
// must not be used any more.
func (b *batch) begin(conn *pgx.Conn, hand *run.Hand, slow bool) {
	b.in.Reset(conn, hand)
	b.taker.reset()
	b.journal = journal{engine: b.engine, in: &b.in, taker: &b.taker}
	b.loader.reset()
	b.stepper.reset(slow)
	b.shared = sharedTx{engine: b.engine, conn: conn}
	b.saver.reset()
	b.effects = outcome.Effects{In: &b.in, Keep: b.history.Queue}
	b.blame = blame{engine: b.engine, in: &b.in, shared: &b.shared}
	b.failing = false
}

// process runs one batch, from the take to the work after the commit. If it returns without an error, one committed
// transaction has decided every message it took; after an error the transaction is rolled back, and every message is
// where it was.
func (b *batch) process(ctx context.Context, o order) (report, error) {
	defer b.engine.To.Memory.Release(&b.loader.holds)
	err := b.run(ctx, o)
	switch {
	case errors.Is(err, outcome.ErrRehearsed):
		b.abandon(ctx)
		b.blame.trouble, b.blame.poisoned = true, true
	case err != nil:
		b.abandon(ctx)
		b.blame.assign(err)
		err = b.refuseLent(ctx, err)
		if len(b.in.Messages) > 0 {
			b.engine.Emit(event.BatchFailed{Endpoint: b.engine.To.Name, Taken: len(b.in.Messages), Err: err})
		}
	}
	b.engine.Counts.AddBatch(&b.effects, err, b.loader.waits, b.loader.instances, b.saver.writes)
	return b.report(err), err
}

// around calls process inside the user's hook. away reports that the hook may still read the batch's memory.
func (b *batch) around(ctx context.Context, o order) (r report, away bool, err error) {
	hook := b.engine.To.Hooks.Around
	if hook == nil {
		r, err = b.process(ctx, o)
		return r, false, err
	}
	t := &event.Transaction{Endpoint: b.engine.To.Name, Work: event.Batch}
	away = hook.Do(ctx, t, func(ctx context.Context) {
		r, err = b.process(ctx, o)
		t.Taken, t.Err = len(b.in.Messages), err
		t.Messages = func() []event.Settled { return outcome.Settled(&b.in, err) }
	})
	return r, away, err
}

// exited ends a batch after a function of the user ended the goroutine. The message in hand has failed, and is judged
// when it is taken again.
func (b *batch) exited(ctx context.Context) report {
	b.abandon(ctx)
	return b.lost(handlers.ErrExited)
}

// left ends a batch whose goroutine is in a function of the user that does not return. The goroutine may still use
// the connection, so left closes only the socket, and Postgres ends the transaction.
func (b *batch) left() report {
	b.journal.leaveLater()
	b.engine.To.Memory.Release(&b.loader.holds)
	if b.stepper.begun {
		return b.lost(handlers.ErrLeft)
	}
	return b.lost(saga.Permanent(fmt.Errorf("decoding it, or the state of its instance: %w", run.ErrLeft)))
}

// lost notes that the batch was lost to err of the message in hand.
func (b *batch) lost(err error) report {
	b.blame.trouble = true
	if b.in.InHand != nil {
		b.engine.To.Memory.FailNext(b.in.InHand.ID, err)
	}
	b.engine.Emit(event.BatchFailed{Endpoint: b.engine.To.Name, Taken: len(b.in.Messages), Err: err})
	b.engine.Counts.AddBatch(&b.effects, err, b.loader.waits, b.loader.instances, b.saver.writes)
	return b.report(err)
}

func (b *batch) run(ctx context.Context, o order) error {
	err := b.taker.take(ctx, o)
	if err == nil && len(b.in.Messages) > 0 {
		err = b.journal.quarantine(ctx, o)
	}
	if err != nil {
		return err
	}
	if len(b.in.Messages) == 0 {
		b.abandon(ctx)
		return nil
	}
	b.history.Begin(&b.effects)
	b.in.Decode(ctx)
	if err := b.engine.Strategy.decide(ctx, b); err != nil {
		return err
	}
	return b.commit(ctx)
}

// Strategy says how an endpoint treats the decoded messages of a batch. It is chosen when the endpoint is built.
type Strategy interface {
	decide(ctx context.Context, b *batch) error                     // decides the fate of each message
	queue(b *batch, pipeline *pgx.Batch, known *queue.Routes) error // writes of this strategy
	// handles reports whether handlers run, so that a message may kill its process.
	handles() bool
}

// Handling calls the handler of each message.
type Handling struct{}

func (Handling) decide(ctx context.Context, b *batch) error {
	if b.in.Fired {
		if err := b.checkRuns(ctx); err != nil {
			return err
		}
	}
	if err := b.loader.load(ctx); err != nil {
		return err
	}
	return b.stepper.step(ctx)
}

func (b *batch) checkRuns(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, contention.AnswerTimeout)
	defer cancel()
	return b.effects.CheckRuns(ctx)
}

func (Handling) queue(*batch, *pgx.Batch, *queue.Routes) error { return nil }
func (Handling) handles() bool                                 { return true }

// commit writes the decisions, and ends the transaction.
func (b *batch) commit(ctx context.Context) error {
	if b.nothingToWrite() {
		b.abandon(ctx)
		return nil
	}
	// From here on a shutdown does not interrupt: the outcome of a cancelled COMMIT is unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), contention.CommitTimeout)
	defer cancel()
	if err := b.shared.takeBackNow(ctx, b.shared.takeBack); err != nil {
		return err
	}
	if err := b.saver.saveInstances(ctx); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	b.failing = b.engine.Finished(ctx, &b.effects)
	return nil
}

func (b *batch) nothingToWrite() bool {
	for _, m := range b.in.Messages {
		if m.Fate != message.FateLeft {
			return false
		}
	}
	return true
}

// abandon rolls the transaction back.
func (b *batch) abandon(ctx context.Context) {
	defer b.journal.leave(ctx)
	contention.Rollback(ctx, b.in.Conn, b.engine.To.Log, b.engine.To.Name)
}

func (b *batch) report(err error) report {
	return report{Report: outcome.ReportOf(&b.effects, err), late: b.in.Late || b.in.Cut, failed: b.blame.trouble,
		failing: b.failing, permit: b.taker.permit, outrun: b.taker.outrun}
}
