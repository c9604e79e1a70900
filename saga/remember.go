package saga

import (
	"reflect"
	"slices"
	"time"
)

// A completed instance that Options.Remember keeps stays in its row, with its last state and one pending timeout,
// which deletes the row. So a late message finds it, by the same lock or version as any other message.

// forgetKind is the kind of the timeout that deletes the row of a completed instance. Every saga has a handler for
// it, because an earlier version of the program may have kept the instance.
const forgetKind = "edda.forget"

// forgetter is the handler of that timeout. Its message has no body.
func forgetter() *handler {
	return &handler{kind: forgetKind, role: RoleTimeout, msgType: reflect.TypeFor[Raw]()}
}

// RememberedUntil returns when the row of a completed instance will be deleted, or zero for a live instance.
func (i Instance) RememberedUntil() time.Time {
	if n := slices.IndexFunc(i.Pending, func(p Pending) bool { return p.Kind == forgetKind }); n >= 0 {
		return i.Pending[n].Due
	}
	return time.Time{}
}

// remember sets the timeout that deletes the row; the instance has no other timeout from now on.
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

// stepRemembered decides about a message for an instance that has completed: the timeout ends the instance, and every
// other message finds no instance and may not start one.
func (s *Session) stepRemembered(call *Call) Outcome {
	if call.h.role != RoleTimeout {
		return Outcome{Missing: true}
	}
	s.last.Pending, s.stepped, s.completed = nil, true, true
	s.last.Originator = Originator{} // its run ended with the instance
	return Outcome{}
}
