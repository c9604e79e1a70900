package outcome

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// CheckRuns locks the runs of the batch's messages until its end, and decides the fate of messages whose runs are not
// current. The runs of messages that move to a partition are checked there.
func (e *Effects) CheckRuns(ctx context.Context) error {
	if !e.In.Fired {
		return nil
	}
	pipeline := &pgx.Batch{}
	finish := QueueRunCheck(e.In.To.Runs, pipeline, e.In.Messages, nil)
	if pipeline.Len() == 0 {
		return nil
	}
	if err := e.In.Conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("check runs: %w", pgerr.Explain(err))
	}
	finish()
	return nil
}

// QueueRunCheck queues the check of messages that have a run. The caller must call finish after the pipeline was
// sent. lost reports whether a different process has taken the message since: then that process decides about the
// run. If lost is nil, no message was lost.
func QueueRunCheck(
	r *runs.Store, pipeline *pgx.Batch, messages []*message.Message, lost func(*message.Message) bool,
) (finish func()) {
	var fired []*message.Message
	var a runs.Attempts
	for _, m := range messages {
		if m.Firing.Emitted && m.Fate != message.FateMoved {
			fired = append(fired, m)
			a.Add(m.Delivery.Info.Firing)
		}
	}
	if len(fired) == 0 {
		return func() {}
	}
	answers := r.QueueCheck(pipeline, a, nil)
	return func() {
		seen := map[saga.ID]bool{}
		for n, m := range fired {
			if lost != nil && lost(m) {
				continue
			}
			run, answer := m.Delivery.Info.Firing.Run, (*answers)[n]
			switch {
			case answer != runs.Current:
			case seen[run]:
				answer = runs.Over // a second message of one attempt, which no scheduler sends: the first decides
			default:
				seen[run] = true
			}
			m.FinishRun(answer)
		}
	}
}

// QueueRunLocks locks the runs that the completions of this batch will end. It comes before the starts, which may
// wait for another batch: this batch must not wait for a batch that waits for it.
func (e *Effects) QueueRunLocks(pipeline *pgx.Batch) {
	var a runs.Attempts
	for _, i := range e.Ending {
		if f := i.Firing(); i.Version > 0 && f != nil {
			a.Add(f)
		}
	}
	if a.Len() > 0 {
		e.In.To.Runs.QueueCheck(pipeline, a, nil)
	}
}

// queueRunEnds queues the reports of runs that end in this transaction, and a heartbeat for runs that continue
// elsewhere: the next heartbeat is due from there. It waits for their manifests, so no statement that waits comes
// after it.
func (e *Effects) queueRunEnds(pipeline *pgx.Batch) {
	if !e.In.Fired && len(e.Ending) == 0 {
		return
	}
	ends := &runs.Ends{Held: []int32{}}
	var open runs.Attempts
	for _, m := range e.In.Messages {
		switch {
		case m.Firing.Run == nil:
		case m.Fate == message.FateDone && m.Firing.Open:
			open.Add(m.Firing.Run)
		default:
			if outcome, text := m.RunEnd(); outcome != "" {
				ends.AddHeld(m.Firing.Run, outcome, text)
			}
		}
	}
	if open.Len() > 0 {
		e.In.To.Runs.QueueBeat(pipeline, open)
	}
	for _, i := range e.Ending {
		f := i.Firing()
		switch {
		case f == nil || !i.Won:
		case i.Version == 0: // started by a message of this batch
			ends.AddHeld(f, runs.Succeeded, "")
		default:
			ends.Add(f, runs.Succeeded, "")
		}
	}
	e.In.To.Runs.QueueEnd(pipeline, ends)
}
