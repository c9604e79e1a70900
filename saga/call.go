package saga

import (
	"context"
	"errors"
	"fmt"
)

// Call is one message made ready for its handler: decoded, with the key it asks for. A Call belongs to one
// goroutine at a time. It may be stepped again after a failure.
type Call struct {
	h        *handler
	def      *Definition
	codec    Codec
	msg      any    // *M; nil once a handler had it, because it may have changed it
	body     []byte // what msg was decoded from
	key      string
	instance ID
}

// Prepare finds the handler of a delivery, decodes the body and reads the key. Every error is a
// *PermanentError: the kind is not handled in this way, the body cannot be decoded, the key is no key, or the
// key function panicked.
func (d *Definition) Prepare(in Delivery, c Codec) (*Call, error) {
	if c == nil {
		c = JSON
	}
	h, err := d.find(&in.Info)
	if err != nil {
		return nil, err
	}
	call := &Call{h: h, def: d, codec: c, msg: h.newMsg(), body: in.Body}
	if in.Info.Intent != Event { // events never carry an instance, whatever their sender wrote
		call.instance = in.Info.Instance
	}
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

// find: a timer goes to OnTimeout only, and nothing else does; the instance id wins over the key.
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

// nilUUID is what a forgotten field gives: all such messages would meet in one instance.
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

// Key is the correlation key; "" when the message is addressed by instance.
func (c *Call) Key() string { return c.key }

// Instance, when it is not zero, is the instance to load; the key is ignored then.
func (c *Call) Instance() ID { return c.instance }

// Definition is the saga that the call was prepared for.
func (c *Call) Definition() *Definition { return c.def }

// Kind is the message's kind.
func (c *Call) Kind() string { return c.h.kind }

// Role is the role of the handler that was found.
func (c *Call) Role() Role { return c.h.role }

// MayStart reports whether the message starts an instance when there is none. Never for a message that
// carries an instance id: an answer to a completed saga does not revive it.
func (c *Call) MayStart() bool { return c.h.role == RoleStart && c.instance.IsZero() }

// Missing is what to do when there is no instance and MayStart is false. A timeout is always discarded: its
// instance is gone.
func (c *Call) Missing() Missing {
	if c.h.role == RoleTimeout {
		return MissingDiscard
	}
	return c.h.missing
}

// StepMissing runs the handler's IfMissingDo; ok is false when it has none. What it sends carries no instance
// as its origin. An answer is still addressed to the instance that asked.
func (c *Call) StepMissing(ctx context.Context, t *Turn) (out Outcome, ok bool) {
	if c.h.ifNone == nil {
		return Outcome{}, false
	}
	msg, err := c.message(t.In.Body)
	if err != nil {
		return Outcome{Err: err}, true
	}
	x := &Context{ctx: ctx, turn: t, def: c.def, key: c.key, missing: true}
	return x.run(func() error { return c.h.ifNone(x, msg) }), true
}

// message hands out the decoded message once, and decodes again for another attempt, since the handler of the
// first may have changed what the message points to, and for another body.
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

// decode is c.Decode, which calls methods of the message's type.
func decode(c Codec, body []byte, into any) (err error) {
	defer caught(&err)
	return c.Decode(body, into)
}
