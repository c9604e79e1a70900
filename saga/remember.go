package saga

import (
	"reflect"
	"slices"
	"time"
)

// A completed instance that Options.Remember keeps stays in its row, with its last state and one pending timeout: the
// one that forgets it. So a message that comes late finds it, by the same lock or version as any other.

// forgetKind is the kind of the timeout that forgets a completed instance. Every saga has a handler for it: the
// instance may have been kept by another version of the program.
const forgetKind = "edda.forget"

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
		if c.panicked {
			return c.faults[0]
		}
		return faultError(c.faults, nil)
	}
	c.pending = append(c.pending, Pending{Kind: forgetKind, Due: out.Info.Due, ID: out.Info.ID})
	return nil
}

// stepRemembered decides about a message for an instance that has completed: the timeout forgets it, and for any other
// message there is no instance, and none may start.
func (s *Session) stepRemembered(call *Call) Outcome {
	if call.h.role != RoleTimeout {
		return Outcome{Missing: true}
	}
	s.last.Pending, s.stepped, s.completed = nil, true, true
	s.last.Originator = Originator{} // its run ended with the instance
	return Outcome{}
}
