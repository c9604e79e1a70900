package saga

import (
	"context"
	"fmt"
	"slices"
)

// decodeEvery is the number of steps that use a large state before it is decoded again. A small state is decoded
// before every step, which costs less than a microsecond per hundred bytes. For a large state that would be most of
// the work, so a state that depends on shared memory is found out only after 16 steps or at the next load. A plain
// state is never decoded again.
const decodeEvery = 16

// Step runs the handler of one prepared message on the instance. It recovers a panic of the handler, and blocks only
// while the handler does.
//
//  1. A timer that is no longer pending is discarded: it was cancelled or replaced after it was sent.
//  2. The state is decoded from the bytes of the last successful step.
//  3. The handler runs with a new Context.
//  4. If the handler succeeds, the state is encoded, and the session keeps the new state, pending timeouts and
//     completion.
//
// The outcome of the first step lists the fields of the stored state that S does not have.
func (s *Session) Step(ctx context.Context, rt *Runtime, call *Call) Outcome {
	out := s.step(ctx, rt, call)
	if s.foreign {
		s.foreign, out.Unknown = false, s.def.unknown(s.opened.State)
	}
	return out
}

func (s *Session) step(ctx context.Context, rt *Runtime, call *Call) Outcome {
	if err := s.refuse(call); err != nil {
		return Outcome{Err: err}
	}
	pending, ok := s.fired(&rt.In.Info)
	if !ok {
		return Outcome{Discard: "timeout was cancelled or replaced"}
	}
	if s.over {
		return s.stepRemembered(call)
	}
	if s.state == nil {
		if _, err := s.decode(); err != nil {
			return Outcome{Err: err}
		}
	}
	c := s.context(ctx, rt, pending)
	out := c.run(func() error {
		msg, err := call.message(rt.In.Body) // here, because Runtime.Around may have changed it
		if err != nil {
			return err
		}
		return call.h.call(s.state, c, msg)
	})
	if out.Err == nil && out.Discard == "" {
		return s.accept(c)
	}
	s.state = nil // drop the handler's changes
	return out
}

// refuse returns an error for a mistake of the runtime.
func (s *Session) refuse(call *Call) error {
	switch {
	case call.def != s.def:
		return fmt.Errorf("step saga %s: the call was prepared for saga %s", nameOf(s.def.name, s.last.Key),
			call.def.name)
	case s.completed:
		return fmt.Errorf("step saga %s: the instance completed earlier in this session",
			nameOf(s.def.name, s.last.Key))
	case !s.live && !call.MayStart():
		return fmt.Errorf("step saga %s: there is no instance, and %s does not start one",
			nameOf(s.def.name, s.last.Key), call.h.kind)
	}
	return nil
}

// fired returns the pending timeouts without the timeout in hand. ok is false if that timeout is not pending.
func (s *Session) fired(in *Info) (pending []Pending, ok bool) {
	if in.Intent != Timer {
		return slices.Clone(s.last.Pending), true
	}
	i := slices.IndexFunc(s.last.Pending, func(p Pending) bool { return p.ID == in.ID })
	if i < 0 {
		return nil, false
	}
	return slices.Delete(slices.Clone(s.last.Pending), i, i+1), true
}

func (s *Session) context(ctx context.Context, rt *Runtime, pending []Pending) *Context {
	c := &Context{
		ctx: ctx, rt: rt, def: s.def, id: s.last.ID, key: s.last.Key,
		isNew: !s.live, originator: s.last.Originator, pending: pending,
	}
	if c.isNew {
		in := &rt.In.Info
		c.originator = Originator{Endpoint: in.From, MessageID: in.ID, Instance: in.Origin,
			Correlation: in.correlation()}
		if in.Firing != nil {
			c.originator.Run, c.originator.RunAttempt = in.Firing.Run, in.Firing.Attempt
		}
	}
	return c
}

// accept keeps the result of the step if its state can be encoded and is not too large.
func (s *Session) accept(c *Context) Outcome {
	state, err := encodeJSON(s.state)
	if err != nil {
		s.state = nil
		return Outcome{Err: permanentf("encode state of saga %s: %w", nameOf(s.def.name, s.last.Key), err)}
	}
	if limit := c.rt.Limits.maxState(); len(state) > limit {
		s.state = nil
		return Outcome{Err: permanentf("state of saga %s has %d bytes, limit %d: %w", nameOf(s.def.name, s.last.Key),
			len(state), limit, ErrTooLarge)}
	}
	if c.complete {
		for _, p := range c.pending {
			c.drop(p)
		}
		c.pending = c.pending[:0]
		if s.def.opts.Remember > 0 {
			if err := s.remember(c); err != nil {
				s.state = nil
				return Outcome{Err: err}
			}
		}
	}
	if len(c.pending) == 0 {
		c.pending = nil // store an empty list always as null
	}
	s.last.State, s.last.Pending, s.last.Originator = state, c.pending, c.originator
	s.live, s.stepped = true, true
	s.over = c.complete && s.def.opts.Remember > 0
	s.completed = c.complete && !s.over
	if s.reused++; !s.def.plain && (len(state) <= smallText || s.reused >= decodeEvery) {
		s.state = nil
	}
	return Outcome{Out: c.out, Cancelled: c.cancelled, Completed: c.complete}
}
