package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Part is one thing an endpoint consumes: Saga, HandleTx, Handle, HandleRaw, Accept or Use. It is sealed.
type Part interface{ part(*handlers) }

type part func(*handlers)

func (p part) part(h *handlers) { p(h) }

// handlers is what an endpoint's parts add up to.
type handlers struct {
	consumers  map[string]*consumer // by kind
	raw        *consumer            // of all other kinds; nil when the endpoint has none
	sagas      map[string]*saga.Definition
	subscribed []string // kinds that are sent or published to this endpoint
	middleware []Middleware
	hasTx      bool
	leased     bool // it has a Handle
	shared     bool // a kind is handled by two sagas, so that a message may be for either
	faults     []error
}

// consumer handles one kind, or with raw every kind that has no other. Exactly one of def, tx, raw, leased and accept
// is set.
type consumer struct {
	kind   string
	what   string // for error texts
	def    *saga.Definition
	tx     func(ctx *Context, tx pgx.Tx, body []byte, codec saga.Codec) error
	raw    func(ctx *Context, d *saga.Delivery) error
	leased func(ctx *Context, body []byte, codec saga.Codec) error
	// of a leased handler in an ordered endpoint, and of a HandleTx in a partitioned one
	key    func(body []byte, codec saga.Codec) (string, error)
	accept func(body []byte, codec saga.Codec) ([]byte, error)
	as     string // with accept: the kind it becomes

	others []*consumer // of other sagas: their answers and timeouts of the kind, which name their instance
}

// of is the consumer of a kind for one saga, nil when that does not handle it.
func (c *consumer) of(d *saga.Definition) *consumer {
	if c.def == d {
		return c
	}
	for _, other := range c.others {
		if other.def == d {
			return other
		}
	}
	return nil
}

func (h *handlers) fault(format string, args ...any) {
	h.faults = append(h.faults, fmt.Errorf(format, args...))
}

// add registers c. One kind has one consumer in an endpoint: a message is deleted once, so its effects must
// win or lose as one.
func (h *handlers) add(c *consumer) bool {
	if err := saga.CheckName(c.kind); err != nil {
		h.fault("%s: kind: %w", c.what, err)
		return false
	}
	if old := h.consumers[c.kind]; old != nil {
		if c.def != nil && old.of(c.def) != nil {
			return true // one saga may have two roles for a kind
		}
		if old.def != nil && c.def != nil {
			return h.share(old, c)
		}
		h.fault("kind %s has two consumers, %s and %s: give one of them an endpoint of its own, and it gets "+
			"its own copy", c.kind, old.what, c.what)
		return false
	}
	h.consumers[c.kind] = c
	return true
}

// share lets two sagas have one kind, if at most one of them finds its instance by a key: an answer and a timeout name
// theirs, and that is of one saga.
func (h *handlers) share(first, second *consumer) bool {
	all := append([]*consumer{first, second}, first.others...)
	var keyed []string
	var gone *saga.KindInfo
	for _, c := range all {
		for _, k := range c.def.Kinds() {
			switch {
			case k.Kind != c.kind || k.Role == saga.RoleTimeout:
			case k.Role == saga.RoleStart || k.Role == saga.RoleHandle:
				keyed = append(keyed, c.what)
			case k.Asks || gone != nil && gone.Missing != k.Missing:
				h.fault("kind %s is an answer to %s and %s: nobody knows for which of them one was whose instance "+
					"is gone, so "+
					"they have the same IfMissing and no IfMissingDo", c.kind, first.what, second.what)
				return false
			default:
				gone = &k
			}
		}
	}
	if len(keyed) > 1 {
		h.fault("kind %s has two consumers, %s and %s, and a message of it names no instance: give one of them an "+
			"endpoint "+
			"of its own, which gets its own copy of an event", first.kind, keyed[0], keyed[1])
		return false
	}
	h.shared = true
	if len(keyed) == 1 && keyed[0] == second.what { // it is first, for messages that name no instance
		second.others, first.others = append(first.others, first), nil
		h.consumers[first.kind] = second
		return true
	}
	first.others = append(first.others, second)
	return true
}

func (h *handlers) subscribe(kind string) {
	if !slices.Contains(h.subscribed, kind) {
		h.subscribed = append(h.subscribed, kind)
	}
}

// Saga makes the endpoint host d. Its steps run inside the batch's transaction and see no transaction.
//
// Two sagas of an endpoint may handle one kind, if at most one of them finds its instance by a key: answers and
// timeouts name their instance, and are for the saga that has it.
func Saga(d *saga.Definition) Part {
	return part(func(h *handlers) {
		if d == nil {
			h.fault("a saga definition is nil")
			return
		}
		if err := d.Err(); err != nil {
			h.faults = append(h.faults, err)
		}
		if h.sagas[d.Name()] != nil {
			h.fault("saga %s is given twice", d.Name())
			return
		}
		h.sagas[d.Name()] = d
		for _, k := range d.Kinds() {
			ok := h.add(&consumer{kind: k.Kind, what: "saga " + d.Name(), def: d})
			if ok && (k.Role == saga.RoleStart || k.Role == saga.RoleHandle) {
				h.subscribe(k.Kind)
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
	return part(func(h *handlers) {
		kind := kindOf[M]()
		if f == nil {
			h.fault("HandleTx of %s: the handler is nil", kind)
			return
		}
		h.hasTx = true
		ok := h.add(&consumer{kind: kind, what: "HandleTx of " + reflect.TypeFor[M]().String(),
			tx: func(ctx *Context, tx pgx.Tx, body []byte, codec saga.Codec) error {
				var m M
				if err := codec.Decode(body, &m); err != nil {
					return saga.Permanent(fmt.Errorf("decode %s: %w", kind, err))
				}
				return f(ctx, tx, m)
			},
			key: keyOption(kind, o)})
		if ok {
			h.subscribe(kind)
		}
	})
}

// Accept takes messages of an older or renamed kind and hands them on as Now, which the endpoint must handle.
// f runs in the batch: it must not block. An error of f is permanent.
func Accept[Old, Now saga.Message](f func(Old) (Now, error)) Part {
	return part(func(h *handlers) {
		old, now := kindOf[Old](), kindOf[Now]()
		if f == nil {
			h.fault("Accept of %s: the function is nil", old)
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
		if h.add(&consumer{kind: old, what: "Accept of " + old, accept: convert, as: now}) {
			h.subscribe(old)
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
	return part(func(h *handlers) {
		for _, one := range m {
			if one == nil {
				h.fault("a middleware is nil")
				continue
			}
			h.middleware = append(h.middleware, one)
		}
	})
}

var errCalledTwice = errors.New("a middleware called next twice in one step")

// around calls call with d, and with the endpoint's middleware around it if there is any.
func (h *handlers) around(ctx context.Context, d *saga.Delivery, call Handler) error {
	if len(h.middleware) == 0 {
		return call(ctx, d)
	}
	own := saga.Delivery{Info: d.Info, Body: bytes.Clone(d.Body)}
	return h.wrap(call)(ctx, &own)
}

// wrap puts the endpoint's middleware around call.
func (h *handlers) wrap(call Handler) Handler {
	called := false
	next := Handler(func(ctx context.Context, d *saga.Delivery) error {
		if called {
			return saga.Permanent(errCalledTwice)
		}
		called = true
		return call(ctx, d)
	})
	for _, m := range slices.Backward(h.middleware) {
		next = m(next)
	}
	return next
}

// checkAccept follows a chain of Accepts to a handler.
func (h *handlers) checkAccept(kind string, c *consumer) {
	for range h.consumers {
		if c.as == "" {
			return
		}
		next := h.consumers[c.as]
		if next == nil {
			h.fault("Accept of %s: nothing in the endpoint handles %s", kind, c.as)
			return
		}
		c = next
	}
	if c.as != "" {
		h.fault("Accept of %s: it goes in a circle, and no handler is in it", kind)
	}
}

func collect(parts []Part, order Ordering) (*handlers, error) {
	h := &handlers{consumers: map[string]*consumer{}, sagas: map[string]*saga.Definition{}}
	for i, p := range parts {
		if p == nil {
			h.fault("part %d is nil", i+1)
			continue
		}
		p.part(h)
	}
	for kind, c := range h.consumers {
		h.checkAccept(kind, c)
	}
	h.checkModes()
	h.checkOrder(order)
	if len(h.consumers) == 0 && h.raw == nil && len(h.faults) == 0 {
		h.fault("it handles nothing: give it a Saga, a HandleTx or a Handle")
	}
	slices.Sort(h.subscribed)
	return h, errors.Join(h.faults...)
}
