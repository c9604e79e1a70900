package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Part is a part of an endpoint: Saga, HandleTx, Handle, HandleRaw, Accept or Use. It is sealed.
type Part interface{ part(*handlers.Table) }

type part func(*handlers.Table)

func (p part) part(h *handlers.Table) { p(h) }

// Saga makes the endpoint host d. Its steps run while the batch's transaction is open, but cannot use it.
//
// Two sagas of an endpoint may handle the same kind if at most one of them finds its instance by a key. Answers and
// timeouts name their instance, and go to the saga that has it.
func Saga(d *saga.Definition) Part {
	return part(func(h *handlers.Table) {
		if d == nil {
			h.Fault("a saga definition is nil")
			return
		}
		if err := d.Err(); err != nil {
			h.Faults = append(h.Faults, err)
		}
		if h.Sagas[d.Name()] != nil {
			h.Fault("saga %s is given twice", d.Name())
			return
		}
		h.Sagas[d.Name()] = d
		for _, k := range d.Kinds() {
			ok := h.Add(&handlers.Consumer{Kind: k.Kind, What: "saga " + d.Name(), Definition: d,
				Type: k.Type})
			if ok && (k.Role == saga.RoleStart || k.Role == saga.RoleHandle) {
				h.Subscribe(k.Kind)
			}
		}
	})
}

// HandleTx makes the endpoint handle M with f, for writes in this database: the rows that f writes through tx, the
// messages that it sends, and the end of the message commit together. tx refuses Commit and Rollback, and its Conn is
// nil. Its isolation level is READ COMMITTED, whatever the default of the database or the role is. f may be called
// concurrently, in different transactions.
//
// Other handlers share the transaction. Settings that f changes with SET, SET LOCAL or set_config are reset after f if
// other handlers depend on them: the role, search_path, timeouts, READ ONLY. Settings with names of your own and
// advisory locks last for the next handlers of the batch; settings of the session last as long as the connection: avoid
// them. DEALLOCATE ALL is refused, and so is SQL that begins or ends a transaction. While the batch has other messages
// f waits at most 5 ms for a row lock; a message that could not get one is tried again alone.
//
// In a partitioned endpoint HandleTx needs a KeyedBy; elsewhere KeyedBy is a fault.
func HandleTx[M saga.Message](f func(*Context, pgx.Tx, M) error, o ...HandleOption[M]) Part {
	return part(func(h *handlers.Table) {
		options := newHandleOptions(o)
		kind := options.kind
		if f == nil {
			h.Fault("HandleTx of %s: the handler is nil", kind)
			return
		}
		h.HasTx = true
		ok := h.Add(&handlers.Consumer{Kind: kind, What: "HandleTx of " + reflect.TypeFor[M]().String(),
			Type: reflect.TypeFor[M](),
			Tx: plain(func(c *Context, of *handlers.Call, d *saga.Delivery) error {
				m, err := decode[M](kind, d.Body, of.Runtime.Codec)
				if err != nil {
					return saga.Permanent(err)
				}
				return f(c, of.Tx, m)
			}),
			Key: options.readKey()})
		if ok {
			h.Subscribe(kind)
		}
	})
}

// Accept converts messages of an older or renamed kind to Now, which the endpoint must handle. f runs in the batch: it
// must not block. An error of f is permanent. f may be called concurrently.
func Accept[Old, Now saga.Message](f func(Old) (Now, error)) Part {
	return part(func(h *handlers.Table) {
		old, now := kindOf[Old](), kindOf[Now]()
		if f == nil {
			h.Fault("Accept of %s: the function is nil", old)
			return
		}
		convert := func(body []byte, codec saga.Codec) ([]byte, error) {
			var m Old
			if err := codec.Decode(body, &m); err != nil {
				return nil, fmt.Errorf("decode %s: %w", old, err)
			}
			as, err := f(m)
			if err != nil {
				return nil, fmt.Errorf("accept %s as %s: %w", old, now, err)
			}
			return codec.Encode(as)
		}
		if h.Add(&handlers.Consumer{Kind: old, What: "Accept of " + old, Type: reflect.TypeFor[Old](), Accept: convert,
			As: now}) {
			h.Subscribe(old)
		}
	})
}

// kindOf calls Kind on the zero value. If Kind panics there, kindOf returns "", which CheckName refuses.
func kindOf[M saga.Message]() (kind string) {
	defer func() {
		if recover() != nil {
			kind = ""
		}
	}()
	var zero M
	return zero.Kind()
}

// Handler is a handler call, as middleware wraps it.
type Handler func(ctx context.Context, d *saga.Delivery) error

// Middleware wraps a handler call. It must call next at most once, and return the error of next or its own: an error
// undoes the step. It must not keep d. The calls are concurrent.
//
// The Body is a copy for this attempt, which the middleware may change for the handler. The queue, a dead letter and
// the next attempt have the original message. The key of a saga or a lane is read, and an Accept converts, before any
// middleware runs, from the original message: if the body is encrypted, use a Codec instead. Handlers do not see
// changes of the Info.
type Middleware func(next Handler) Handler

// Use puts middleware around every handler of the endpoint; the first is the outermost.
func Use(m ...Middleware) Part {
	return part(func(h *handlers.Table) {
		for _, one := range m {
			if one == nil {
				h.Fault("a middleware is nil")
				continue
			}
			h.Middleware = append(h.Middleware, func(next handlers.Next) handlers.Next { return one(next) })
		}
	})
}

// InvalidPart makes NewEndpoint fail with err. It is for packages that make parts, when a part cannot be made.
func InvalidPart(err error) Part {
	return part(func(h *handlers.Table) { h.Faults = append(h.Faults, err) })
}

func collect(parts []Part, order Ordering, codec saga.Codec) (*handlers.Table, error) {
	h := handlers.New()
	for i, p := range parts {
		if p == nil {
			h.Fault("part %d is nil", i+1)
			continue
		}
		p.part(h)
	}
	h.CheckAccepts()
	h.CheckTypes(codec)
	checkModes(h)
	checkOrder(h, order)
	if len(h.Consumers) == 0 && h.Raw == nil && len(h.Faults) == 0 {
		h.Fault("it handles no message: give it a Saga, a HandleTx or a Handle")
	}
	slices.Sort(h.Subscribed)
	return h, errors.Join(h.Faults...)
}

// ErrLeave, returned by a raw handler, ends the batch before this message. The message and all messages behind it
// stay in the queue, and no attempt is counted. The messages before it in the batch commit. A worker takes the
// message again soon.
var ErrLeave = message.ErrLeave

// HandleRaw makes the endpoint handle with f, as bytes, every message that its other parts do not handle: for
// bridges, relays and programs that do not have the Go types. Such an endpoint has no unknown kinds. HandleRaw
// subscribes it to the given kinds only; messages that name the endpoint (saga.To) arrive in any case.
//
// f runs while the batch's transaction is open, but cannot use it, for at most StepTimeout; other messages of the
// batch wait for it. It must not keep d or its Body, which is a copy for this attempt. The endpoint's policy decides
// about its errors, except ErrLeave.
func HandleRaw(f func(ctx *Context, d *saga.Delivery) error, kinds ...string) Part {
	return part(func(h *handlers.Table) {
		switch {
		case f == nil:
			h.Fault("HandleRaw: the handler is nil")
			return
		case h.Raw != nil:
			h.Fault("HandleRaw is given twice: only one handler can get the remaining kinds")
			return
		}
		h.Raw = &handlers.Consumer{What: "HandleRaw",
			Raw: plain(func(c *Context, _ *handlers.Call, d *saga.Delivery) error { return f(c, d) })}
		for _, kind := range kinds {
			if err := saga.CheckName(kind); err != nil {
				h.Fault("HandleRaw: kind %.80q: %w", kind, err)
				continue
			}
			h.Subscribe(kind)
		}
	})
}
