package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/edda-go/edda/internal/batch"
	"github.com/edda-go/edda/internal/handlers"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Part is one thing an endpoint consumes: Saga, HandleTx, Handle, HandleRaw, Accept or Use. It is sealed.
type Part interface{ part(*handlers.Table) }

type part func(*handlers.Table)

func (p part) part(h *handlers.Table) { p(h) }

// Saga makes the endpoint host d. Its steps run inside the batch's transaction and see no transaction.
//
// Two sagas of an endpoint may handle one kind, if at most one of them finds its instance by a key: answers and
// timeouts name their instance, and are for the saga that has it.
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
			ok := h.Add(&handlers.Consumer{Kind: k.Kind, What: "saga " + d.Name(), Definition: d})
			if ok && (k.Role == saga.RoleStart || k.Role == saga.RoleHandle) {
				h.Subscribe(k.Kind)
			}
		}
	})
}

// HandleTx makes the endpoint handle M with f, for writes in this database: what f does through tx, what it sends, and
// the message commit together. tx refuses Commit and Rollback, and has no Conn. It is READ COMMITTED, whatever the
// default of the database or the role is.
//
// Other handlers share the transaction. What one sets with SET, SET LOCAL or set_config ends with it where it matters
// to others (its role, search_path, timeouts, a transaction that is read-only); settings with names of your own and
// advisory locks stay for the next handlers of the batch, and those of a session for the connection: leave them out.
// DEALLOCATE ALL is refused, as is whatever begins or ends a transaction. Row locks are waited for at most 5 ms while
// the batch has other messages; a message that could not get one is tried again alone.
//
// In a partitioned endpoint it needs a KeyedBy, and takes none elsewhere.
func HandleTx[M saga.Message](f func(*Context, pgx.Tx, M) error, o ...HandleOption[M]) Part {
	return part(func(h *handlers.Table) {
		kind := kindOf[M]()
		if f == nil {
			h.Fault("HandleTx of %s: the handler is nil", kind)
			return
		}
		h.HasTx = true
		ok := h.Add(&handlers.Consumer{Kind: kind, What: "HandleTx of " + reflect.TypeFor[M]().String(),
			Tx: plain(func(c *Context, of *handlers.Call, d *saga.Delivery) error {
				var m M
				if err := of.Runtime.Codec.Decode(d.Body, &m); err != nil {
					return saga.Permanent(fmt.Errorf("decode %s: %w", kind, err))
				}
				return f(c, of.Tx, m)
			}),
			Key: keyOption(kind, o)})
		if ok {
			h.Subscribe(kind)
		}
	})
}

// Accept takes messages of an older or renamed kind and hands them on as Now, which the endpoint must handle.
// f runs in the batch: it must not block. An error of f is permanent.
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
		if h.Add(&handlers.Consumer{Kind: old, What: "Accept of " + old, Accept: convert, As: now}) {
			h.Subscribe(old)
		}
	})
}

// kindOf calls Kind on the zero value. A Kind that needs more than that is a fault found by CheckName, as "".
func kindOf[M saga.Message]() (kind string) {
	defer func() {
		if recover() != nil {
			kind = ""
		}
	}()
	var zero M
	return zero.Kind()
}

// Handler is one handler call as middleware sees it.
type Handler func(ctx context.Context, d *saga.Delivery) error

// Middleware wraps a handler call. It must call next at most once and return its error or its own: an error
// undoes the step. It must not keep d.
//
// The Body is a copy for this attempt: the handler is given what the middleware makes of it, while the queue, a dead
// letter and the next attempt have the message as it came. The key of a saga or a lane, and what an Accept converts,
// are read before any middleware runs, from the message as it came: a body that only a middleware can read (one that is
// encrypted) needs a Codec. Changes of the Info are not seen by handlers.
type Middleware func(next Handler) Handler

// Use puts middleware around every handler of the endpoint; the first given is the outermost.
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

func collect(parts []Part, order Ordering) (*handlers.Table, error) {
	h := handlers.New()
	for i, p := range parts {
		if p == nil {
			h.Fault("part %d is nil", i+1)
			continue
		}
		p.part(h)
	}
	h.CheckAccepts()
	checkModes(h)
	checkOrder(h, order)
	if len(h.Consumers) == 0 && h.Raw == nil && len(h.Faults) == 0 {
		h.Fault("it handles nothing: give it a Saga, a HandleTx or a Handle")
	}
	slices.Sort(h.Subscribed)
	return h, errors.Join(h.Faults...)
}

// ErrLeave, returned by a raw handler, ends the batch before this message: it stays at its place in the queue,
// with nothing known against it and no attempt counted, and so does everything behind it. What came before it in the
// batch commits. A worker takes the message again soon.
var ErrLeave = batch.ErrLeave

// HandleRaw makes the endpoint hand f every message whose kind none of its other parts handles, as bytes: for bridges,
// relays and programs that do not have the Go types. There are no unknown kinds in such an endpoint. It is subscribed
// to the kinds given here, and to no other: what is addressed to it by name (saga.To) arrives in any case.
//
// f runs inside the batch's transaction, which it does not see: at most StepTimeout, while other messages of the batch
// wait for their commit. It must not keep d, nor its Body, which is a copy for this attempt. Its errors go to the
// endpoint's policy, except ErrLeave.
func HandleRaw(f func(ctx *Context, d *saga.Delivery) error, kinds ...string) Part {
	return part(func(h *handlers.Table) {
		switch {
		case f == nil:
			h.Fault("HandleRaw: the handler is nil")
			return
		case h.Raw != nil:
			h.Fault("HandleRaw is given twice: one handler gets what no other part handles")
			return
		}
		h.Raw = &handlers.Consumer{What: "HandleRaw",
			Raw: plain(func(c *Context, _ *handlers.Call, d *saga.Delivery) error { return f(c, d) })}
		for _, kind := range kinds {
			if err := saga.CheckName(kind); err != nil {
				h.Fault("HandleRaw: kind: %w", err)
				continue
			}
			h.Subscribe(kind)
		}
	})
}
