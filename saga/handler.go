package saga

import (
	"fmt"
	"reflect"
)

// handler is one handler without its type parameters. addHandler uses reflection once; a call uses no reflection.
type handler struct {
	kind    string
	role    Role
	msgType reflect.Type
	newMsg  func() any                                 // *M
	key     func(msg any, in Info) string              // nil for OnReply and OnTimeout
	call    func(state any, c *Context, msg any) error // state is *S, msg is *M
	missing Missing
	ifNone  func(c *Context, msg any) error // IfMissingDo, or nil
	asked   bool                            // IfMissing was given
}

// StartedBy handles M on the instance with its key, and starts an instance if the key has none. The key function reads
// the key from the message, or from the message and its Info (a header, the firing of a manifest). Keys are compared
// byte by byte. A key that is empty, the nil UUID, over 512 bytes, not UTF-8, or has NUL is a permanent failure.
//
// A message with an instance id, such as an answer, never starts an instance: a late answer does not revive a
// completed saga. M and K are inferred from the two functions.
func StartedBy[S any, M Message, K ~func(M) string | ~func(M, Info) string](key K, h func(*S, *Context, M) error,
	o ...HandleOption) Part[S] {
	return part[S](func(d *Definition) { addHandler(d, RoleStart, keyOf[M](key), h, o) })
}

// Handles handles M on the instance with its key and never starts one. StartedBy documents the key; IfMissing decides
// about a message without an instance.
func Handles[S any, M Message, K ~func(M) string | ~func(M, Info) string](key K, h func(*S, *Context, M) error,
	o ...HandleOption) Part[S] {
	return part[S](func(d *Definition) { addHandler(d, RoleHandle, keyOf[M](key), h, o) })
}

// OnReply handles answers to messages that the instance has sent. An answer carries the id of its instance, so
// OnReply needs no key. A kind may have both OnReply and Handles: a message with an instance id goes to OnReply.
func OnReply[S any, M Message](h func(*S, *Context, M) error, o ...HandleOption) Part[S] {
	return part[S](func(d *Definition) { addHandler[S, M](d, RoleReply, nil, h, o) })
}

// OnTimeout handles M only if Context.Timeout or Context.TimeoutAt of the same instance has sent it.
func OnTimeout[S any, M Message](h func(*S, *Context, M) error) Part[S] {
	return part[S](func(d *Definition) { addHandler[S, M](d, RoleTimeout, nil, h, nil) })
}

// Upcast converts state that was stored with version from directly into the current S. Each older version needs one
// Upcast. An error of f makes the messages of the instance permanent failures.
func Upcast[S, Old any](from int, f func(Old) (S, error)) Part[S] {
	return part[S](func(d *Definition) {
		switch {
		case f == nil:
			d.fault("Upcast from version %d is nil", from)
		case d.upcasts[from] != nil:
			d.fault("two Upcasts from version %d", from)
		}
		d.upcasts[from] = func(b []byte) (out []byte, err error) {
			defer caught(&err)
			var old Old
			if err := decodeJSON(b, &old); err != nil {
				return nil, err
			}
			now, err := f(old)
			if err != nil {
				return nil, err
			}
			return encodeJSON(&now)
		}
	})
}

// HandleOption is an option of StartedBy, Handles or OnReply. It is sealed.
type HandleOption interface{ handle(*handler) error }

type handleOption func(*handler) error

func (f handleOption) handle(h *handler) error { return f(h) }

// IfMissing sets the treatment of this handler's messages that find no instance. It overrides Options.Missing.
func IfMissing(m Missing) HandleOption {
	return handleOption(func(h *handler) error {
		h.missing, h.asked = m, true
		return checkMissing(m)
	})
}

// IfMissingDo calls f if there is no instance. f may call Send, Publish and Reply; Complete and Timeout are faults,
// because they need an instance. M must be the handler's message type.
func IfMissingDo[M Message](f func(*Context, M) error) HandleOption {
	return handleOption(func(h *handler) error {
		switch {
		case f == nil:
			return fmt.Errorf("IfMissingDo is nil")
		case h.msgType != reflect.TypeFor[M]():
			return fmt.Errorf("IfMissingDo takes %v", reflect.TypeFor[M]())
		case h.ifNone != nil:
			return fmt.Errorf("two IfMissingDo")
		}
		h.ifNone = func(c *Context, msg any) error { return f(c, *msg.(*M)) }
		return nil
	})
}

func checkMissing(m Missing) error {
	if m > MissingDeadLetter {
		return fmt.Errorf("Missing is %d: want MissingDiscard, MissingRetry or MissingDeadLetter", uint8(m))
	}
	return nil
}

// keyOf converts the two forms of a key function, which may have named types, to one type. nil stays nil, and
// register reports it.
func keyOf[M Message](key any) func(any, Info) string {
	for _, form := range []reflect.Type{reflect.TypeFor[func(M) string](), reflect.TypeFor[func(M, Info) string]()} {
		if v := reflect.ValueOf(key); v.CanConvert(form) {
			key = v.Convert(form).Interface()
		}
	}
	switch key := key.(type) {
	case func(M) string:
		if key != nil {
			return func(msg any, _ Info) string { return key(*msg.(*M)) }
		}
	case func(M, Info) string:
		if key != nil {
			return func(msg any, in Info) string { return key(*msg.(*M), in) }
		}
	}
	return nil
}

// addHandler adds one handler without its type parameters to the definition, and checks it.
func addHandler[S any, M Message](d *Definition, role Role, key func(any, Info) string, f func(*S, *Context, M) error,
	o []HandleOption) {
	h := &handler{
		role: role, msgType: reflect.TypeFor[M](), key: key, missing: d.opts.Missing,
		newMsg: func() any { return new(M) },
		call:   func(state any, c *Context, msg any) error { return f(state.(*S), c, *msg.(*M)) },
	}
	d.starts = d.starts || role == RoleStart
	kind, err := kindOf[M]()
	if err != nil {
		d.fault("%v for %v: %w", role, h.msgType, err)
		return
	}
	h.kind = kind
	d.register(h, f == nil)
	if f != nil && losesChanges(f, d.stateType) {
		d.fault("%v of %s: its value receiver loses changes to the state; declare it on *%s",
			role, kind, d.stateType.Name())
	}
	for _, opt := range o {
		if opt == nil {
			d.fault("%v of %s: an option is nil", role, kind)
		} else if err := opt.handle(h); err != nil {
			d.fault("%v of %s: %w", role, kind, err)
		}
	}
	if h.asked && h.ifNone != nil {
		d.fault("%v of %s: give IfMissing or IfMissingDo, not both", role, kind)
	}
}

// register adds h to the table for its role, and reports a second handler of its kind.
func (d *Definition) register(h *handler, noFunc bool) {
	if noFunc {
		d.fault("%v of %s: the handler is nil", h.role, h.kind)
	}
	table := d.table(h.role)
	if (h.role == RoleStart || h.role == RoleHandle) && h.key == nil {
		d.fault("%v of %s: the key function is nil", h.role, h.kind)
	}
	if old := table[h.kind]; old != nil {
		d.fault("kind %s has two handlers: %v of %v and %v of %v", h.kind, old.role, old.msgType, h.role, h.msgType)
		return
	}
	table[h.kind] = h
	d.order = append(d.order, h)
}

// table returns the handlers that are looked up in the same way as r. StartedBy and Handles share a table, because a
// kind that is found by key has one handler.
func (d *Definition) table(r Role) map[string]*handler {
	switch r {
	case RoleReply:
		return d.reply
	case RoleTimeout:
		return d.timer
	}
	return d.keyed
}
