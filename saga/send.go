package saga

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Send sends a command to the one endpoint that handles its kind. Like Publish and the replies, it returns the id of
// the message, or zero after a fault.
func (c *Context) Send(m Message, o ...SendOption) ID {
	c.alive("Send")
	return c.emit(Command, m, o)
}

// Publish sends an event to every endpoint that handles its kind.
func (c *Context) Publish(m Message, o ...SendOption) ID {
	c.alive("Publish")
	return c.emit(Event, m, o)
}

// Reply answers the message in hand. The answer goes to the endpoint that sent the message, and to the saga instance
// there that sent it, if any. Answering a message from outside, or a timeout, is a fault.
func (c *Context) Reply(m Message, o ...SendOption) ID {
	c.alive("Reply")
	return c.emit(Answer, m, o)
}

// ReplyToOriginator answers the message that started the instance, from any step, even of a timeout. The answer's
// correlation id is that message's id. If the instance was started from outside, it is a fault; see HasOriginator.
func (c *Context) ReplyToOriginator(m Message, o ...SendOption) ID {
	c.alive("ReplyToOriginator")
	if !c.needInstance("ReplyToOriginator") {
		return ID{}
	}
	to := c.originator
	if to.Endpoint == "" {
		c.fault("ReplyToOriginator: the instance was started from outside, so there is no sender to answer")
		return ID{}
	}
	out, err := c.rt.compose(Command, m, o) // not Answer: compose would address it to the sender of this message
	if err != nil {
		c.fault("ReplyToOriginator: %w", err)
		return ID{}
	}
	out.Info.Intent, out.Info.Instance, out.Info.CorrelationID = Answer, to.Instance, to.MessageID
	if out.To == "" {
		out.To = to.Endpoint
	}
	return c.add(out)
}

// HasOriginator reports whether a message of an endpoint started the instance, so that ReplyToOriginator can answer.
func (c *Context) HasOriginator() bool {
	c.alive("HasOriginator")
	return c.originator.Endpoint != ""
}

func (c *Context) emit(intent Intent, m Message, o []SendOption) ID {
	out, err := c.rt.compose(intent, m, o)
	if err != nil {
		c.fault("%v: %w", intent, err)
		return ID{}
	}
	out.Info.Origin = c.id
	return c.add(out)
}

func (c *Context) add(out Outgoing) ID {
	if limit := c.rt.Limits.maxOut(); len(c.out) >= limit {
		c.fault("%s: more than %d messages in one step: %w", out.Info.Kind, limit, ErrTooLarge)
		return ID{}
	}
	if limit := c.rt.Limits.maxOutBytes(); len(out.Body) > limit-c.outBytes {
		c.fault("%s: more than %d bytes of messages in one step: %w", out.Info.Kind, limit, ErrTooLarge)
		return ID{}
	}
	if c.rt.Admit != nil && out.Info.Intent != Timer {
		if err := c.rt.Admit(&out); err != nil {
			c.fault("%w", err)
			return ID{}
		}
	}
	if c.rt.Outgoing != nil {
		if err := c.rt.stamp(c.ctx, &out.Info); err != nil {
			stampFailed(c, err)
			return ID{}
		}
	}
	c.outBytes += len(out.Body)
	c.out = append(c.out, out)
	return out.Info.ID
}

// Compose encodes and addresses one message as a step with this Runtime would. It is for plain handlers and for
// senders: with a zero In the message comes from outside and starts a conversation. Every error is a *PermanentError.
func (rt *Runtime) Compose(intent Intent, m Message, o ...SendOption) (Outgoing, error) {
	out, err := rt.compose(intent, m, o)
	if err == nil && rt.Outgoing != nil && rt.Caller != nil {
		err = rt.stamp(rt.Caller, &out.Info)
	}
	if err != nil {
		return Outgoing{}, &PermanentError{Err: fmt.Errorf("%v: %w", intent, err)}
	}
	return out, nil
}

func (rt *Runtime) compose(intent Intent, m Message, o []SendOption) (Outgoing, error) {
	out, err := rt.encode(intent, m)
	if err != nil {
		return Outgoing{}, err
	}
	if len(o) > 0 {
		if err := rt.apply(o, &out); err != nil {
			return Outgoing{}, fmt.Errorf("%s: %w", out.Info.Kind, err)
		}
	}
	if intent == Answer {
		err = rt.address(&out)
	}
	rt.relate(&out.Info)
	return out, err
}

// encode encodes m; later changes to m have no effect.
func (rt *Runtime) encode(intent Intent, m Message) (Outgoing, error) {
	if m == nil {
		return Outgoing{}, errors.New("the message is nil")
	}
	kind := m.Kind()
	if err := CheckName(kind); err != nil {
		return Outgoing{}, fmt.Errorf("kind %.80q: %w", kind, err)
	}
	raw, asItIs := m.(Raw)
	body, err := raw.Body, error(nil)
	if !asItIs {
		if body, err = rt.codec().Encode(m); err != nil {
			return Outgoing{}, fmt.Errorf("encode %s: %w", kind, err)
		}
	}
	if limit := rt.Limits.maxBody(); len(body) > limit {
		return Outgoing{}, fmt.Errorf("%s: body of %d bytes, limit %d: %w", kind, len(body), limit, ErrTooLarge)
	}
	if asItIs { // after the check, so that a refused body is not copied
		body = append(make([]byte, 0, len(body)), body...)
	}
	info := Info{Kind: kind, Intent: intent, From: rt.Endpoint, Sent: rt.Now}
	return Outgoing{Info: info, Body: body, Type: reflect.TypeOf(m)}, nil
}

func (rt *Runtime) apply(o []SendOption, out *Outgoing) error {
	s, err := settingsOf(o...)
	if err != nil {
		return err
	}
	if err := rt.checkHeaders(s.Header); err != nil {
		return err
	}
	out.Info.ID, out.GivenID, out.To, out.Info.Firing = s.ID, !s.ID.IsZero(), s.To, s.Firing
	out.MustRoute = s.MustRoute
	for _, name := range slices.Sorted(maps.Keys(s.Header)) {
		out.Info.AddHeader(name, s.Header[name])
	}
	var wait time.Duration
	switch {
	case s.Delay > 0:
		wait, err = s.Delay, rt.delay(s.Delay, out)
	case !s.At.IsZero():
		wait = max(s.At.Sub(rt.clock()), 0)
		out.Info.Due, err = rt.dueAt(s.At)
	}
	if err == nil && s.Expire > 0 {
		out.Info.Expire, err = rt.expire(s.Expire, wait)
	}
	return err
}

// expire returns the time from sending until the message expires.
func (rt *Runtime) expire(d, wait time.Duration) (time.Duration, error) {
	if limit := rt.Limits.maxDelay(); d > limit {
		return 0, fmt.Errorf("expires after %v, limit %v", d, limit)
	}
	return wait + d, nil
}

// delay adds d to the store's clock. If the runtime has no clock, the database adds it.
func (rt *Runtime) delay(d time.Duration, out *Outgoing) (err error) {
	if limit := rt.Limits.maxDelay(); d > limit {
		return fmt.Errorf("delay %v, limit %v", d, limit)
	}
	if rt.Clock == nil {
		out.Delay = d
		return nil
	}
	out.Info.Due = roundUp(rt.Clock().Add(d))
	return nil
}

// dueAt returns the zero time if at has passed: the message is then due at once, but not ahead of waiting messages.
func (rt *Runtime) dueAt(at time.Time) (time.Time, error) {
	if err := checkTime(at); err != nil {
		return time.Time{}, err
	}
	now := rt.clock()
	if !at.After(now) {
		return time.Time{}, nil
	}
	if limit := rt.Limits.maxDelay(); at.Sub(now) > limit {
		return time.Time{}, fmt.Errorf("due at %v, limit %v from now", at.UTC().Format(time.RFC3339), limit)
	}
	return roundUp(at), nil
}

// roundUp rounds t up to microseconds, the precision of Postgres, so that no message is early.
func roundUp(t time.Time) time.Time {
	down := t.UTC().Truncate(microsec)
	if down.Before(t) {
		return down.Add(microsec)
	}
	return down
}

// address addresses an answer to the sender of the message in hand.
func (rt *Runtime) address(out *Outgoing) error {
	in := &rt.In.Info
	switch {
	case in.Intent == Timer:
		return fmt.Errorf("%s: a timeout has no sender to answer; use ReplyToOriginator", out.Info.Kind)
	case in.From == "":
		return fmt.Errorf("%s: %s came from outside, so there is no sender to answer", out.Info.Kind, in.Kind)
	}
	if out.To == "" {
		out.To = in.From
	}
	out.Info.Instance = in.Origin
	return nil
}

// relate gives the message its id and its place in the chain of messages.
func (rt *Runtime) relate(i *Info) {
	if i.ID.IsZero() {
		i.ID = rt.NewID()
	}
	in := &rt.In.Info
	if in.ID.IsZero() {
		i.CorrelationID, i.ConversationID = i.ID, i.ID
		return
	}
	i.CorrelationID, i.ConversationID, i.RelatedTo = in.correlation(), in.conversation(), in.ID
}
