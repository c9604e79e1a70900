package message

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// Errors that users may look for in the error of a message.
var (
	ErrConflict    = errors.New("concurrent transactions changed the saga instance first, too often")
	ErrUnknownKind = errors.New("no program that consumes this queue handles its kind")
	ErrProcessDied = errors.New("the process died while it handled the message")
)

// pauseWait is how long a message whose policy paused the endpoint is kept from workers that have not yet read the
// pause.
const pauseWait = time.Second

// DBTime estimates the database's clock between two times that it returned.
type DBTime struct {
	// this process's clock, just before the transaction began; zero if time must not advance while a message is
	// handled
	Begun time.Time
	Now   time.Time // the database's clock after the begin
}

// Begin notes that the transaction begins now.
func (t *DBTime) Begin() { t.Begun = time.Now() }

// Read takes over the database's clock, as a statement of the transaction has returned it.
func (t *DBTime) Read(now time.Time) { t.Now = now }

// Clock returns an upper bound of the database's clock: a time computed from it is never early.
func (t *DBTime) Clock() time.Time {
	if t.Begun.IsZero() {
		return t.Now
	}
	return t.Now.Add(time.Since(t.Begun))
}

// Tally decides the fate of a message whose attempt ended, and counts the failures: it calls the policy, and sets the
// fate.
type Tally struct {
	To *Recipient
	DBTime

	Failed
	Retried []FailedAttempt // each was repeated in this transaction
	Late    bool            // no more steps begin
}

// Failed counts the attempts that a Tally has judged.
type Failed struct {
	Failures int      // failed attempts, except conflicts
	Failure  error    // the last of them
	Pausing  *Message // the message whose policy pauses the endpoint
}

// Stop lets no more steps begin in this transaction.
func (t *Tally) Stop() { t.Late = true }

// RetryNow begins a further attempt of m in the same transaction. The failed one is kept for the history, the log and
// the events.
func (t *Tally) RetryNow(m *Message) {
	t.Retried = append(t.Retried, FailedAttempt{Of: m, Info: m.Delivery.Info, Err: m.Err, Took: m.Step.Took})
	m.Delivery.Info.Attempt = m.Attempt + 1
	m.Leave()
}

// failureOf returns the arguments of a policy about m.
func (t *Tally) failureOf(m *Message, err error) recoverability.Failure {
	var sagas []string
	if m.Consumer != nil && m.Consumer.Definition != nil {
		sagas = []string{m.Consumer.Definition.Name()}
	}
	return recoverability.Failure{
		Info: m.Delivery.Info, Err: err, Endpoint: t.To.Name, First: m.FirstFailed, Conflicts: m.Conflict,
		Now: t.Now, Handled: t.To.Handled.Load(), Sagas: sagas,
	}
}

// Lose takes the step of m back, because its instance lost the save. The message stays in the queue. After a few
// losses it is written back with their number, so that they count in all processes; after more than most losses the
// policy for conflicts decides.
func (t *Tally) Lose(m *Message, most int) {
	m.Conflicted = true
	m.Attempt, m.FirstFailed = m.taken.Attempt, m.taken.FirstFailed // it decided on an old state
	m.Leave()
	losses := t.To.Memory.LoseMessage(m.ID)
	if losses == 0 {
		return
	}
	m.Conflict = min(m.Conflict+losses, math.MaxInt32)
	if m.Conflict <= most {
		m.PutBack(0, ErrConflict)
		return
	}
	t.loseTooOften(m)
}

// loseTooOften calls the policy for conflicts. Its decision costs no attempt.
func (t *Tally) loseTooOften(m *Message) {
	if t.To.Options.ConflictPolicy != nil && m.FirstFailed.IsZero() {
		m.FirstFailed = t.Now
	}
	j := t.judge(recoverability.ResolveConflict, t.To.Options.ConflictPolicy, t.failureOf(m, ErrConflict))
	if j.Action == recoverability.ActionCountAsFailure {
		m.Conflict = 0
		t.Fail(m, ErrConflict)
		return
	}
	t.carryOut(m, ErrConflict, j)
}

// pauseAfter makes the write of this batch pause the endpoint; the batch starts no more steps.
func (t *Tally) pauseAfter(m *Message, reason string, err error) {
	m.PutBack(pauseWait, err)
	m.Reason = reason
	t.Pausing, t.Late = m, true
}

// Pauses reports whether this batch pauses its endpoint: not if the message whose policy pauses it lost to a
// conflict.
func (t *Tally) Pauses() bool { return t.Pausing != nil && t.Pausing.Fate == FateAgain }

// Decide turns an outcome into a fate.
func (t *Tally) Decide(m *Message, out saga.Outcome) {
	switch {
	case out.Err != nil:
		t.Fail(m, out.Err)
	case out.Discard != "":
		m.Err = nil
		m.Drop(out.Discard)
	default:
		m.Err = nil // of an earlier attempt in this batch
		m.Fate, m.Step.Out, m.Step.Gone = FateDone, out.Out, out.Cancelled
		m.Firing.Open = out.RunOpen
	}
}

// Fail calls the policy for a failed attempt.
func (t *Tally) Fail(m *Message, err error) {
	if m.FirstFailed.IsZero() {
		m.FirstFailed = t.Clock()
	}
	if now := m.Attempt + 1; m.Delivery.Info.Attempt != now { // an abandoned function may be reading it at this moment
		m.Delivery.Info.Attempt = now
	}
	err = t.examined(err)
	j := t.judge(recoverability.Resolve, t.To.Options.Policy, t.failureOf(m, err))
	m.Attempt = min(m.Attempt+1, math.MaxInt32) // the column is an int4
	if !j.conflict {
		t.Failures, t.Failure = t.Failures+1, err
	}
	t.logPanic(m, err)
	t.carryOut(m, err, j)
}

// Judges calls the policies of an endpoint, and the methods of its handlers' errors. Safe for concurrent use.
type Judges struct {
	handlers.Guest
	mu     sync.Mutex
	places map[string]bool // places in the code where a handler has panicked, for the log; guarded by mu
}

// NewJudges returns the Judges of an endpoint.
func NewJudges() *Judges {
	return &Judges{Guest: handlers.Guest{Most: mostJudgesAway}, places: map[string]bool{}}
}

// mostPlaces is the number of places whose panics are logged with their stack.
const mostPlaces = 1000

// logPanic logs a panic with its stack, the first from each place.
func (t *Tally) logPanic(m *Message, err error) {
	e, ok := err.(interface{ PanicStack() string })
	if !ok || e.PanicStack() == "" {
		return
	}
	j, stack := t.To.Options.Judges, e.PanicStack()
	place, _, _ := strings.Cut(stack, "\n")
	j.mu.Lock()
	known := j.places[place] || len(j.places) >= mostPlaces
	if !known {
		j.places[place] = true
	}
	j.mu.Unlock()
	if !known {
		t.To.Log.Warn("edda: a handler panicked", append(wire.LogArgs(t.To.Name, &m.Delivery.Info),
			"error", err, "stack", stack)...)
	}
}

// mostJudgesAway is how many policies may run past their time before messages are given up without a verdict.
const mostJudgesAway = 16

// examined is saga.Examined, protected against the methods of the error.
func (t *Tally) examined(err error) error {
	return t.To.Options.Judges.Examined(t.To.Options.patience(), err)
}

// judged is a verdict on an error, with the results of the error's own methods, which are the user's code.
type judged struct {
	recoverability.Verdict
	permanent, conflict, hopeless bool
}

// judge calls a policy, and gives the message up if the policy does not return.
func (t *Tally) judge(
	resolve func(recoverability.Policy, recoverability.Failure) recoverability.Verdict, p recoverability.Policy,
	f recoverability.Failure,
) judged {
	j, wrong := handlers.Ask(&t.To.Options.Judges.Guest, t.To.Options.patience(), func() judged {
		var permanent *saga.PermanentError
		j := judged{Verdict: resolve(p, f), permanent: errors.As(f.Err, &permanent)}
		j.conflict, j.hopeless = errors.Is(f.Err, ErrConflict), isHopeless(f.Err)
		return j
	})
	if wrong != nil {
		wrong = fmt.Errorf("recoverability policy: %w", wrong)
		return judged{Verdict: recoverability.Verdict{Action: recoverability.ActionDeadLetter, Err: wrong}}
	}
	return j
}

// carryOut makes a verdict the fate of m.
func (t *Tally) carryOut(m *Message, err error, j judged) {
	switch j.Action {
	case recoverability.ActionRetryNow:
		m.PutBack(0, err)
	case recoverability.ActionRetryIn:
		m.PutBack(j.Delay, err)
	case recoverability.ActionDiscard:
		m.Err = err
		m.Drop(j.Reason)
	case recoverability.ActionPause:
		t.pauseAfter(m, j.Reason, err)
	default:
		if j.Err != nil {
			err = errors.Join(err, j.Err)
		}
		m.die(j.deathReason(), err, j.hopeless)
	}
}

func (j *judged) deathReason() string {
	switch {
	case j.Err != nil:
		return "the policy failed"
	case j.permanent:
		return "permanent"
	case j.conflict:
		return "conflicts"
	}
	return "given up by the policy"
}

// isHopeless reports whether a further attempt would fail like the one that failed with err.
func isHopeless(err error) bool {
	var permanent *saga.PermanentError
	return errors.As(err, &permanent) || errors.Is(err, ErrUnknownKind) || errors.Is(err, ErrProcessDied)
}
