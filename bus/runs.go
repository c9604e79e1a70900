package bus

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/pg"

	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A message that a manifest emitted names its run, and which attempt of the run it is (saga.Info.Fire). The transaction
// that consumes such a message also ends the run, by functions of SQL whose contract is in the migration named
// scheduler: this package knows none of the scheduler's tables. A transaction first checks the runs of its messages,
// which holds those that are current; a message whose run was cancelled, timed out or sent again meanwhile is discarded
// without a handler.

//go:embed runs.sql
var runStatements string

// errNoRun is the error of a message whose run was deleted. It is stored as a dead letter, so that it does not vanish.
var errNoRun = errors.New("its run does not exist")

const runIsOver = "its run is over" // cancelled, timed out, or sent again as another attempt

// What run_check answers.
const (
	runOver    = 0
	runCurrent = 1
	runMissing = -1
)

// What run_end is told.
const (
	runSucceeded = "succeeded"
	runFailed    = "failed" // tried again while its manifest has retries
	runDead      = "dead"   // never tried again
	runDiscarded = "discarded"
	runCancelled = "cancelled"
)

// attempts names attempts of runs, as the functions want them.
type attempts struct {
	runs     [][16]byte
	attempts []int32
}

func (a *attempts) add(f *saga.Fire) {
	a.runs, a.attempts = append(a.runs, f.Run), append(a.attempts, int32(f.Attempt))
}

func (a *attempts) len() int { return len(a.runs) }

// queueCheck queues the check. The answers are there, one for each attempt, when the pipeline was sent.
func (b *Bus) queueCheck(pipeline *pgx.Batch, a attempts, worker *string) *[]int32 {
	answers := new([]int32)
	pipeline.Queue(b.runs.Get("run_check"), a.runs, a.attempts,
		worker).QueryRow(func(row pgx.Row) error { return row.Scan(answers) })
	return answers
}

// checkRuns holds the runs of the batch's messages until its end, and decides the fate of messages whose runs are not
// current. What moves on to a partition is checked there.
func (e *effects) checkRuns(ctx context.Context) error {
	if !e.in.fired {
		return nil
	}
	pipeline := &pgx.Batch{}
	settle := e.in.ep.bus.queueRunCheck(pipeline, e.in.messages, nil)
	if pipeline.Len() == 0 {
		return nil
	}
	if err := e.in.conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("check runs: %w", pg.Explain(err))
	}
	settle()
	return nil
}

// queueRunCheck queues the check of those messages that have a run. settle is to be called when the pipeline was sent.
// lost reports whether somebody else has a message by then: what became of its run is not ours to settle. nil is that
// nobody has.
func (b *Bus) queueRunCheck(pipeline *pgx.Batch, messages []*message, lost func(*message) bool) (settle func()) {
	var fired []*message
	var a attempts
	for _, m := range messages {
		if m.firing.emitted && m.fate != fateMoved {
			fired = append(fired, m)
			a.add(m.delivery.Info.Fire)
		}
	}
	if len(fired) == 0 {
		return func() {}
	}
	answers := b.queueCheck(pipeline, a, nil)
	return func() {
		seen := map[saga.ID]bool{}
		for n, m := range fired {
			if lost != nil && lost(m) {
				continue
			}
			run, answer := m.delivery.Info.Fire.Run, (*answers)[n]
			switch {
			case answer != runCurrent:
			case seen[run]:
				answer = runOver // a second message of one attempt, which no scheduler sends: the first decides
			default:
				seen[run] = true
			}
			m.settleRun(answer)
		}
	}
}

// settleRun makes what became of m's run its fate, unless the run is current.
func (m *message) settleRun(answer int32) {
	m.firing.run = nil
	switch answer {
	case runCurrent:
		m.firing.run = m.delivery.Info.Fire
	case runMissing:
		m.die(errNoRun.Error(), errNoRun)
	default:
		m.err = nil
		m.drop(runIsOver)
	}
}

// queueRunLocks locks the runs that the completions of this batch will end. It stands before the starts, which may wait
// for another batch: whoever waits there must not be waited for here.
func (s *saver) queueRunLocks(pipeline *pgx.Batch) {
	var a attempts
	for _, i := range s.effects.ending {
		if f := i.firing(); i.version > 0 && f != nil {
			a.add(f)
		}
	}
	if a.len() > 0 {
		s.in.ep.bus.queueCheck(pipeline, a, nil)
	}
}

// firing is what started the instance, nil when that was no manifest.
func (i *instance) firing() *saga.Fire {
	if i == nil || i.session == nil {
		return nil
	}
	in, err := i.session.Instance()
	if err != nil || in.Originator.Run.IsZero() {
		return nil
	}
	return &saga.Fire{Run: in.Originator.Run, Attempt: in.Originator.RunAttempt}
}

// runEnds are the reports of one transaction.
type runEnds struct {
	attempts
	outcomes, errors []string
	held             []int32 // positions of those that must be current
}

func (e *runEnds) add(f *saga.Fire, outcome, text string) {
	e.attempts.add(f)
	e.outcomes, e.errors = append(e.outcomes, outcome), append(e.errors, deadletter.Storable(text))
}

// addHeld is add for a run that this transaction has checked.
func (e *runEnds) addHeld(f *saga.Fire, outcome, text string) {
	e.add(f, outcome, text)
	e.held = append(e.held, int32(e.len()))
}

func (b *Bus) queueRunEnd(pipeline *pgx.Batch, e *runEnds) {
	if e.len() > 0 {
		pipeline.Queue(b.runs.Get("run_end"), e.runs, e.attempts.attempts, e.outcomes, e.errors, e.held)
	}
}

// queueRunEnds reports the runs that end in this transaction. It waits for their manifests, so nothing that waits
// stands behind it.
func (e *effects) queueRunEnds(pipeline *pgx.Batch) {
	if !e.in.fired && len(e.ending) == 0 {
		return
	}
	ends := &runEnds{held: []int32{}}
	for _, m := range e.in.messages {
		if m.firing.run != nil {
			m.reportRun(ends)
		}
	}
	for _, i := range e.ending {
		f := i.firing()
		switch {
		case f == nil || !i.won && e.save == nil: // a save that goes with the second trip is sure
		case i.version == 0: // started by a message of this batch
			ends.addHeld(f, runSucceeded, "")
		default:
			ends.add(f, runSucceeded, "")
		}
	}
	e.in.ep.bus.queueRunEnd(pipeline, ends)
}

// reportRun adds how m's run ended. A message that is written back or left ends nothing, and one that started an
// instance leaves the run open for as long as that lives.
func (m *message) reportRun(ends *runEnds) {
	switch m.fate {
	case fateDone:
		if f := m.instance.firing(); f != nil && f.Run == m.firing.run.Run && f.Attempt == m.firing.run.Attempt {
			return
		}
		ends.addHeld(m.firing.run, runSucceeded, "")
	case fateDead:
		outcome := runFailed
		if m.hopeless() {
			outcome = runDead
		}
		ends.addHeld(m.firing.run, outcome, deadletter.ErrorText(m.err))
	case fateDropped:
		outcome := runDiscarded
		if m.firing.cancelled {
			outcome = runCancelled
		}
		ends.addHeld(m.firing.run, outcome, m.reason)
	}
}

// hopeless tells of a message that was given up whether another attempt would be as useless.
func (m *message) hopeless() bool {
	var permanent *saga.PermanentError
	return errors.As(m.err, &permanent) || errors.Is(m.err, ErrUnknownKind) || errors.Is(m.err, ErrProcessDied)
}

// callOff is drop for a message that Operator.Cancel has ended.
func (m *message) callOff(reason string) {
	m.drop(reason)
	m.firing.cancelled = true
}
