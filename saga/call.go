package saga

import (
	"context"
	"errors"
	"fmt"
)

// Call is one message that is ready for its handler: decoded, with its key. A Call belongs to one goroutine at a
// time. It may be stepped again after a failure.
type Call struct {
	h        *handler
	def      *Definition
	codec    Codec
	msg      any    // *M; nil after it was given to a handler, because the handler may have changed it
	body     []byte // the bytes that msg was decoded from
	key      string
	instance ID
}

// Prepare finds the handler of a delivery, decodes the body and reads the key; a nil Codec is JSON. Every error is a
// *PermanentError: the saga does not handle the kind, or not with this intent; the body cannot be decoded; the key is
// invalid; or the key function panicked. Prepare is safe for concurrent use.
func (d *Definition) Prepare(in Delivery, c Codec) (*Call, error) {
	if c == nil {
		c = JSON
	}
	h, err := d.find(&in.Info)
	if err != nil {
		return nil, err
	}
	call := &Call{h: h, def: d, codec: c, body: in.Body}
	if in.Info.Intent != Event { // an event has no instance, whatever its sender wrote
		call.instance = in.Info.Instance
	}
	if h.newMsg == nil {
		return call, nil // forgetter
	}
	call.msg = h.newMsg()
	if err := decode(c, in.Body, call.msg); err != nil {
		return nil, permanentf("decode %s for saga %s: %w", h.kind, d.name, err)
	}
	if !call.instance.IsZero() {
		return call, nil
	}
	if call.key, err = h.keyFor(call.msg, in.Info); err != nil {
		return nil, permanentf("key of %s for saga %s: %w", h.kind, d.name, err)
	}
	return call, nil
}

// find returns the handler of a message. Only a timer goes to OnTimeout; an instance id takes precedence over the key.
func (d *Definition) find(in *Info) (*handler, error) {
	addressed := !in.Instance.IsZero() && in.Intent != Event
	if in.Intent == Timer {
		h := d.timer[in.Kind]
		switch {
		case h == nil:
			return nil, permanentf("timeout %s: saga %s has no OnTimeout for it", in.Kind, d.name)
		case !addressed:
			return nil, permanentf("timeout %s for saga %s carries no instance id", in.Kind, d.name)
		}
		return h, nil
	}
	reply, keyed := d.reply[in.Kind], d.keyed[in.Kind]
	switch {
	case addressed && reply != nil:
		return reply, nil
	case keyed != nil:
		return keyed, nil
	case reply != nil:
		return nil, permanentf("%s: saga %s handles it as an answer, and it carries no instance id", in.Kind, d.name)
	case d.timer[in.Kind] != nil:
		return nil, permanentf("%s: saga %s handles it as a timeout only, and it came by %v", in.Kind, d.name,
			in.Intent)
	}
	return nil, permanentf("%s: saga %s does not handle it", in.Kind, d.name)
}

// nilUUID is the key of a message whose UUID was not set: all such messages would share one instance.
const nilUUID = "00000000-0000-0000-0000-000000000000"

func (h *handler) keyFor(msg any, in Info) (key string, err error) {
	defer caught(&err)
	key = h.key(msg, in)
	switch {
	case key == "":
		return "", fmt.Errorf("it is empty")
	case len(key) > maxKey:
		return "", fmt.Errorf("%d bytes, want at most %d: %w", len(key), maxKey, ErrTooLarge)
	case !validText(key):
		return "", fmt.Errorf("%d bytes: %w", len(key), ErrInvalidText)
	case key == nilUUID:
		return "", errors.New("it is the nil UUID, so a field was not set")
	}
	return key, nil
}

// Key returns the correlation key, or "" if the message names its instance.
func (c *Call) Key() string { return c.key }

// Instance returns the id of the instance to load. If it is zero, load by Key.
func (c *Call) Instance() ID { return c.instance }

// Definition returns the saga that the call was prepared for.
func (c *Call) Definition() *Definition { return c.def }

// MayStart reports whether the message starts an instance if its key has none. It is false for a message with an
// instance id: an answer to a completed saga does not revive it.
func (c *Call) MayStart() bool { return c.h.role == RoleStart && c.instance.IsZero() }

// Missing returns the treatment of the message if there is no instance and MayStart is false. A timeout without an
// instance is always discarded.
func (c *Call) Missing() Missing {
	if c.h.role == RoleTimeout {
		return MissingDiscard
	}
	return c.h.missing
}

// StepMissing runs the handler's IfMissingDo; ok is false if the handler has no IfMissingDo. The messages that it
// sends have no instance as their origin. An answer still goes to the instance that sent the request.
func (c *Call) StepMissing(ctx context.Context, rt *Runtime) (out Outcome, ok bool) {
	if c.h.ifNone == nil {
		return Outcome{}, false
	}
	msg, err := c.message(rt.In.Body)
	if err != nil {
		return Outcome{Err: err}, true
	}
	x := &Context{ctx: ctx, rt: rt, def: c.def, key: c.key, missing: true}
	return x.run(func() error { return c.h.ifNone(x, msg) }), true
}

// message returns the decoded message once. For a different body, and for a further attempt, it decodes again,
// because the first handler may have changed memory that the message points to.
func (c *Call) message(body []byte) (any, error) {
	msg := c.msg
	c.msg = nil
	if msg != nil && len(body) == len(c.body) && (len(body) == 0 || &body[0] == &c.body[0]) {
		return msg, nil
	}
	msg = c.h.newMsg()
	if err := decode(c.codec, body, msg); err != nil {
		return nil, permanentf("decode %s: %w", c.h.kind, err)
	}
	return msg, nil
}

// decode calls c.Decode, and recovers panics of the message type's own methods.
func decode(c Codec, body []byte, into any) (err error) {
	defer caught(&err)
	return c.Decode(body, into)
}
