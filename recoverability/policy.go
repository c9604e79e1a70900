package recoverability

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/edda-go/edda/saga"
)

// Failure is what a policy knows.
type Failure struct {
	Info      saga.Info // Info.Attempt is the attempt that failed, from 1
	Err       error
	Endpoint  string
	First     time.Time // when the message first failed
	Conflicts int       // lost saves; not counted in Info.Attempt
	Sagas     []string  // the sagas that were stepping
	Now       time.Time // by the database's clock, when the message was taken
	Handled   int64     // messages that this process has handled in the endpoint since its Run began
}

// Policy decides about one failure. It is called by many goroutines at once, after the failed step was undone.
type Policy func(Failure) Decision

// Decision is sealed: RetryNow, RetryIn, DeadLetter, DiscardBecause, PauseEndpoint and CountAsFailure make one. Its
// zero value is not a decision and is refused, so that a forgotten return cannot lose a message.
type Decision interface{ verdict() Verdict }

type decision Verdict

func (d decision) verdict() Verdict { return Verdict(d) }

// RetryNow tries again as soon as possible.
func RetryNow() Decision { return decision{Action: ActionRetryNow} }

// RetryIn tries again after d. d ≤ 0 is RetryNow; more than ten years is ten years.
func RetryIn(d time.Duration) Decision {
	if d <= 0 {
		return RetryNow()
	}
	return decision{Action: ActionRetryIn, Delay: min(d, longest)}
}

// DeadLetter keeps the message, with its bytes, headers and error, until somebody decides.
func DeadLetter() Decision { return decision{Action: ActionDeadLetter} }

// DiscardBecause consumes the message and records the reason.
func DiscardBecause(reason string) Decision {
	if reason == "" {
		reason = "no reason given"
	}
	return decision{Action: ActionDiscard, Reason: reason}
}

// PauseEndpoint stops the endpoint in all processes, until somebody resumes it by its name. The message stays: it is
// written back with this attempt counted, and tried again after that. It is for failures that no message of the
// endpoint can escape, such as a password that has expired. reason is what the person who looks is shown.
func PauseEndpoint(reason string) Decision {
	if reason == "" {
		reason = "no reason given"
	}
	return decision{Action: ActionPause, Reason: reason}
}

// CountAsFailure makes a conflict a failed attempt, about which the endpoint's policy then decides. It is for policies
// of conflicts; for a failure it is no decision.
func CountAsFailure() Decision { return decision{Action: ActionCountAsFailure} }

// Action is what a runtime does with a failed message. Its zero value is no action.
type Action uint8

const (
	ActionRetryNow Action = iota + 1
	ActionRetryIn
	ActionDeadLetter
	ActionDiscard
	ActionPause
	ActionCountAsFailure
)

var actionNames = [...]string{"no action", "retry now", "retry in", "dead letter", "discard", "pause the endpoint",
	"count as a failure"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// Verdict is a decision opened, for runtimes.
type Verdict struct {
	Action Action
	Delay  time.Duration // with ActionRetryIn: > 0
	Reason string        // with ActionDiscard and ActionPause
	Err    error         // the policy itself failed: it panicked, or returned no decision
}

// Resolve asks p about f; a nil p is Default. When the policy itself fails, the verdict is a dead letter whose
// Err says so: another attempt would ask the same policy.
func Resolve(p Policy, f Failure) Verdict {
	if p == nil {
		p = Default
	}
	v := ask(p, f)
	if v.Action == ActionCountAsFailure {
		return broken(errors.New("it counts a failure as a failure, which decides nothing"))
	}
	return v
}

// ResolveConflict is Resolve for a conflict. A nil p is Always(CountAsFailure()).
func ResolveConflict(p Policy, f Failure) Verdict {
	if p == nil {
		return Verdict{Action: ActionCountAsFailure}
	}
	return ask(p, f)
}

func ask(p Policy, f Failure) (v Verdict) {
	defer func() {
		if r := recover(); r != nil {
			v = broken(&saga.PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	d, ok := p(f).(decision)
	if !ok || d.Action == 0 {
		return broken(errors.New("it returned no decision"))
	}
	return d.verdict()
}

func broken(err error) Verdict {
	return Verdict{Action: ActionDeadLetter, Err: fmt.Errorf("recoverability policy: %w", err)}
}

// longest is the longest delay there is, for messages and retries alike.
const longest = 10 * 365 * 24 * time.Hour
