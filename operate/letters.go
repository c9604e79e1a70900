package operate

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// Errors of DeadLetters. A method that returns one of them has changed nothing.
var (
	// ErrNoLetter means that no dead letter has this number, or that it has been retried or discarded.
	ErrNoLetter = deadletter.ErrNotFound
	// ErrNoJob means that no job has this number.
	ErrNoJob = deadletter.ErrNoJob
	// ErrUndeliverable means that the queue of a dead letter does not exist.
	ErrUndeliverable = deadletter.ErrUndeliverable
)

// DeadLetters lists, retries and discards messages that failed for good, one or many, and lists messages that were
// consumed without effect. Each letter ends exactly once (retried, edited or discarded, alone or by a job), even if
// several callers try at the same time and some are killed. If the connection broke during the commit, ErrNoLetter of a
// second call means that the first had succeeded.
type DeadLetters struct{ o *Operator }

// DeadLetters returns the methods for dead letters.
//
//	groups, _, err := operator.DeadLetters().Groups(ctx, recoverability.GroupFilter{Endpoint: "orders"})
//	err = operator.DeadLetters().Retry(ctx, groups[0].Example)
func (o *Operator) DeadLetters() DeadLetters { return DeadLetters{o} }

// List returns dead letters without their bodies, in the order of their numbers; fewer than f.Limit if there are no
// more. One statement reads at most 10,000 letters, and List repeats it until it has enough.
func (d DeadLetters) List(ctx context.Context, f recoverability.LetterFilter) ([]recoverability.Letter, error) {
	return d.o.letters.List(ctx, d.o.pool, f)
}

// Show returns one dead letter with its body, or ErrNoLetter.
func (d DeadLetters) Show(ctx context.Context, number int64) (recoverability.Letter, error) {
	return d.o.letters.Show(ctx, d.o.pool, number)
}

// Count returns the number of dead letters that a filter selects, up to 100,000. One statement reads at most 10,000
// letters. If no index fits the filter, as for a kind or a time alone, Count reads all letters.
func (d DeadLetters) Count(ctx context.Context, f recoverability.LetterFilter) (int64, error) {
	return d.o.letters.Count(ctx, d.o.pool, f)
}

// Groups returns groups in the order of their names, and the last name that it read, or "" if there are no more. It
// probes an index for each group, and counts at most 100,000, or GroupFilter.CountTo, of its entries.
func (d DeadLetters) Groups(
	ctx context.Context, f recoverability.GroupFilter,
) (groups []recoverability.LetterGroup, next string, err error) {
	return d.o.letters.Groups(ctx, d.o.pool, f)
}

// SetNote replaces the note of a group; "" removes it. It returns ErrNoLetter for a group without letters, and refuses
// a text that is longer than 2,000 bytes, not UTF-8, or has characters that are not printed.
func (d DeadLetters) SetNote(ctx context.Context, group, text string) error {
	return d.o.letters.SetNote(ctx, d.o.pool, group, text)
}

// Retry removes a dead letter and puts its message back into its queue, in one transaction. Of several concurrent
// callers one succeeds and the others get ErrNoLetter; if the first fails, a later one succeeds. A letter from a
// foreign system may be larger than a queue allows (body 16 MiB, header 2 MiB, kind 255 bytes): the error is
// saga.ErrTooLarge. If the endpoint has no queue, the error is ErrUndeliverable.
func (d DeadLetters) Retry(ctx context.Context, number int64) error {
	return d.RetryTo(ctx, number, "")
}

// RetryTo is Retry to a different endpoint; "" is the letter's own.
func (d DeadLetters) RetryTo(ctx context.Context, number int64, endpoint string) error {
	return d.o.letters.RetryTo(ctx, d.o.pool, resender(d), number, endpoint)
}

// Edit changes a dead letter and retries it, in one transaction. Originals returns the old message. The message keeps
// its id, so that its receivers recognize it, unless e.ID is set.
//
// Edit returns the errors of Retry, and an error for a body or headers over the limits of a send, for a header that
// only the bus sets, and, with e.JSON, for a body that is not JSON.
func (d DeadLetters) Edit(ctx context.Context, number int64, e recoverability.Edit) error {
	return d.o.letters.Edit(ctx, d.o.pool, resender(d), number, e)
}

// Discard removes a dead letter and records the reason; the body is deleted. The error is ErrNoLetter as for Retry.
func (d DeadLetters) Discard(ctx context.Context, number int64, reason string) error {
	return d.o.letters.Discard(ctx, d.o.pool, number, reason)
}

// Originals returns dead letters as they were before an edit, in the order of the edits. It uses only MessageID, After
// and Limit of f.
func (d DeadLetters) Originals(
	ctx context.Context, f recoverability.LetterFilter,
) ([]recoverability.Original, error) {
	return d.o.letters.ListEdited(ctx, d.o.pool, f)
}

// Discarded returns records of messages that were consumed without effect, in order. It ignores Group, DiedFrom and
// DiedBefore of f.
func (d DeadLetters) Discarded(
	ctx context.Context, f recoverability.LetterFilter,
) ([]recoverability.Discarded, error) {
	return d.o.letters.ListDiscarded(ctx, d.o.pool, f)
}

// NewJob stores a job for RunJob. It uses only Action, Filter, Rate, Reason, To, Plan and Patch of j. If the endpoint
// To has no queue, the error is ErrUndeliverable.
func (d DeadLetters) NewJob(ctx context.Context, j recoverability.Job) (number int64, err error) {
	return d.o.letters.NewJob(ctx, d.o.pool, j)
}

// Job returns one job, or ErrNoJob.
func (d DeadLetters) Job(ctx context.Context, number int64) (recoverability.Job, error) {
	return d.o.letters.Job(ctx, d.o.pool, number)
}

// Jobs returns at most limit jobs, the newest first; 0 or less is 50, and more than 200 is an error.
func (d DeadLetters) Jobs(ctx context.Context, limit int) ([]recoverability.Job, error) {
	return d.o.letters.Jobs(ctx, d.o.pool, limit)
}

// RunJob runs a job to its end and returns its state. A step is one transaction that ends at most 100 letters and 8
// MiB and advances the job's mark. A program that is killed loses only the step in hand: the next call of RunJob
// continues where the last step ended. Several processes may run the same job; each letter ends once, and the rate
// holds for all of them together.
//
// If progress is not nil, it is called after each step. RunJob returns when the job is done, cancelled or paused, and
// with an error when ctx ends, when no job has this number (ErrNoJob), or when the connection is lost; the next call
// continues.
func (d DeadLetters) RunJob(
	ctx context.Context, number int64, progress func(recoverability.Job),
) (recoverability.Job, error) {
	return d.o.letters.RunJob(ctx, d.o.pool, d.o.resender(), number, progress)
}

// ResumeJob opens a paused job again, for RunJob: it starts with the first stage of its plan, and covers the letters
// that it has not sent yet. The error is ErrNoJob if no paused job has this number.
func (d DeadLetters) ResumeJob(ctx context.Context, number int64) error {
	return d.o.letters.ResumeJob(ctx, d.o.pool, number)
}

// CancelJob cancels a job that is open or paused. Letters that it has ended stay ended, and a running RunJob returns
// after the step in hand. The error is ErrNoJob if no open or paused job has this number.
func (d DeadLetters) CancelJob(ctx context.Context, number int64) error {
	return d.o.letters.CancelJob(ctx, d.o.pool, number)
}

// UndoJob takes back the messages that a retry job has sent: each message that still waits in its queue, and that no
// worker has attempted, becomes the same dead letter again, with its number. An open or paused job is cancelled first.
// UndoJob works in steps like RunJob, so it can be called again after an interruption. Its data is kept for 30 days
// after the end of the job. The error is ErrNoJob if no retry job has this number. A job with a Patch cannot be undone.
func (d DeadLetters) UndoJob(ctx context.Context, number int64) (recoverability.Undone, error) {
	return d.o.letters.UndoJob(ctx, d.o.pool, number)
}

// Preview returns the first letters that a filter selects with a JSON merge patch applied, f.Limit of them; 0 is 50. It
// needs Options.Patch.
func (d DeadLetters) Preview(
	ctx context.Context, f recoverability.LetterFilter, patch []byte,
) ([]recoverability.PatchPreview, error) {
	return d.o.letters.Preview(ctx, d.o.pool, patcher{resender(d)}, f, patch)
}

// resender returns the resender of jobs, which can change bodies only with Options.Patch.
func (o *Operator) resender() deadletter.Resender {
	if o.options.Patch == nil {
		return resender{o}
	}
	return patcher{resender{o}}
}

// resender writes dead letters back into queues.
type resender struct{ o *Operator }

// Wake wakes the workers of endpoints after the commit.
func (r resender) Wake(ctx context.Context, endpoints ...string) { r.o.Wake(ctx, endpoints...) }

// Resend writes dead letters back into the queues they came from, in tx, due now in the order given. If a letter's
// endpoint has no queue, Resend returns ErrUndeliverable and has written nothing.
func (r resender) Resend(ctx context.Context, tx pgx.Tx, letters ...recoverability.Letter) error {
	known, err := r.o.routes.SeenBy(ctx, tx)
	if err != nil {
		return err
	}
	byQueue := map[*queue.Queue][]recoverability.Letter{}
	var order []*queue.Queue
	for _, l := range letters {
		q := known.Endpoints[l.Endpoint]
		if q == nil {
			return fmt.Errorf("resend message %s to endpoint %q: %w: %w", l.MessageID, l.Endpoint, queue.ErrNoRoute,
				ErrUndeliverable)
		}
		if byQueue[q] == nil {
			order = append(order, q)
		}
		byQueue[q] = append(byQueue[q], l)
	}
	for _, q := range order {
		if err := tx.SendBatch(ctx, resends(q, byQueue[q])).Close(); err != nil {
			return fmt.Errorf("resend %d messages to endpoint %s: %w", len(byQueue[q]), q.Endpoint, pgerr.Explain(err))
		}
	}
	return nil
}

// resends returns the statements that write letters to q.
func resends(q *queue.Queue, letters []recoverability.Letter) *pgx.Batch {
	pipeline := &pgx.Batch{}
	in := queue.NewInOrder(pipeline, q)
	for _, l := range letters {
		in.Add(l.MessageID, l.Kind, l.Header, l.Body)
	}
	in.Flush()
	return pipeline
}

// patcher is a resender that changes bodies.
type patcher struct{ resender }

// Patch applies a JSON merge patch to a body.
func (p patcher) Patch(body, patch []byte) ([]byte, error) {
	if p.o.options.Patch == nil {
		return nil, errNoPatch
	}
	return p.o.options.Patch(body, patch)
}
