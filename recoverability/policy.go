package recoverability

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/edda-go/edda/saga"
)

// Failure is the input of a policy.
type Failure struct {
	Info      saga.Info // Info.Attempt is the attempt that failed, from 1
	Err       error
	Endpoint  string
	First     time.Time // when the message first failed
	Conflicts int       // lost saves, which Info.Attempt does not count
	Sagas     []string  // the sagas whose step failed
	Now       time.Time // by the database's clock, when the message was taken
	Handled   int64     // messages that this process has handled in the endpoint since Run began
}

// Policy decides about one failure, after the step was undone. It must be safe for concurrent use.
type Policy func(Failure) Decision

// Decision is the output of a policy. RetryNow, RetryIn, DeadLetter, DiscardBecause, PauseEndpoint and CountAsFailure
// make one; the type is sealed. Resolve refuses nil and the zero value, so a forgotten return cannot lose a message.
type Decision interface{ verdict() Verdict }

type decision Verdict

func (d decision) verdict() Verdict { return Verdict(d) }

// RetryNow retries the message as soon as possible.
func RetryNow() Decision { return decision{Action: ActionRetryNow} }

// RetryIn retries the message after d. d ≤ 0 means RetryNow; more than ten years means ten years.
func RetryIn(d time.Duration) Decision {
	if d <= 0 {
		return RetryNow()
	}
	return decision{Action: ActionRetryIn, Delay: min(d, longest)}
}

// DeadLetter keeps the message with its bytes, headers and error until an operator retries or discards it.
func DeadLetter() Decision { return decision{Action: ActionDeadLetter} }

// DiscardBecause consumes the message and records the reason.
func DiscardBecause(reason string) Decision {
	if reason == "" {
		reason = "no reason given"
	}
	return decision{Action: ActionDiscard, Reason: reason}
}

// PauseEndpoint stops the endpoint in all processes until an operator resumes it. The message returns to the queue
// with this attempt counted, and is retried after the resume. Use it for failures that affect every message of the
// endpoint, such as an expired password. The reason is shown to operators.
func PauseEndpoint(reason string) Decision {
	if reason == "" {
		reason = "no reason given"
	}
	return decision{Action: ActionPause, Reason: reason}
}

// CountAsFailure turns a conflict into a failed attempt, about which the endpoint's policy then decides. It is valid
// only in a policy for conflicts.
func CountAsFailure() Decision { return decision{Action: ActionCountAsFailure} }

// Action is the treatment of a failed message by a runtime. The zero value means no action.
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

// Verdict is a Decision with its values, for runtimes.
type Verdict struct {
	Action Action
	Delay  time.Duration // with ActionRetryIn: > 0
	Reason string        // with ActionDiscard and ActionPause
	Err    error         // the policy itself failed: it panicked, or returned no decision
}

// Resolve calls p with f; a nil p is Default. If the policy panics or returns no decision, the verdict is a dead
// letter with the reason in Err, because a retry would call the same policy again.
func Resolve(p Policy, f Failure) Verdict {
	if p == nil {
		p = Default
	}
	v := ask(p, f)
	if v.Action == ActionCountAsFailure {
		return broken(errors.New("CountAsFailure is only for a ConflictPolicy, and this is a failure"))
	}
	return v
}

// ResolveConflict is Resolve for a conflict. A nil p means Always(CountAsFailure()).
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

// longest is the longest delay of a message or a retry.
const longest = 10 * 365 * 24 * time.Hour
