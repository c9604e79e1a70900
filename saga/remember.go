package saga

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A completed instance that Options.Remember keeps stays in its row, with its last state and one pending timeout: the
// one that forgets it. So a message that comes late finds it, by the same lock or version as any other.

// forgetKind is the kind of the timeout that forgets a completed instance. It comes to the endpoint of the saga alone.
const forgetKind = "edda.forget"

var errRemembered = errors.New("the saga instance has completed")

// forgetter is the handler of that timeout. Its message has no body.
func forgetter() *handler {
	return &handler{kind: forgetKind, role: RoleTimeout, msgType: reflect.TypeFor[Raw]()}
}

// RememberedUntil is when a completed instance is forgotten that Options.Remember keeps, and zero for one that lives.
func (i Instance) RememberedUntil() time.Time {
	if n := slices.IndexFunc(i.Pending, func(p Pending) bool { return p.Kind == forgetKind }); n >= 0 {
		return i.Pending[n].Due
	}
	return time.Time{}
}

// remember sets the timeout that forgets the instance of a step, which is its only one from now on.
func (s *Session) remember(c *Context) error {
	out, err := c.rt.compose(Timer, Raw{Name: forgetKind}, nil)
	if err != nil {
		return err
	}
	out.Info.Due, out.Info.Instance, out.Info.Origin = roundUp(c.rt.clock().Add(s.def.opts.Remember)), c.id, c.id
	if c.add(out).IsZero() {
		return faultError(c.faults, nil)
	}
	c.pending = append(c.pending, Pending{Kind: forgetKind, Due: out.Info.Due, ID: out.Info.ID})
	return nil
}

// stepRemembered decides about a message for an instance that has completed: the timeout forgets it, and for any other
// message there is no instance, and none may start.
func (s *Session) stepRemembered(ctx context.Context, rt *Runtime, call *Call) Outcome {
	if call.Role() == RoleTimeout {
		s.last.Pending, s.completed = nil, true
		s.last.Originator = Originator{} // its run ended with the instance
		return Outcome{}
	}
	if out, ok := call.StepMissing(ctx, rt); ok {
		return out
	}
	err := fmt.Errorf("%s for saga %s: %w", call.Kind(), nameOf(s.def.name, s.last.Key), errRemembered)
	switch call.Missing() {
	case MissingRetry:
		return Outcome{Err: err}
	case MissingDeadLetter:
		return Outcome{Err: &PermanentError{Err: err}}
	}
	return Outcome{Discard: "instance has completed"}
}
