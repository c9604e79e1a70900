package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/fields"
	"github.com/edda-go/edda/internal/base/secret"
	"github.com/edda-go/edda/saga"
)

// Table holds the handlers of an endpoint's parts.
type Table struct {
	Consumers  map[string]*Consumer // by kind
	Raw        *Consumer            // of all other kinds; nil without such a handler
	Sagas      map[string]*saga.Definition
	Subscribed []string // kinds that are sent or published to this endpoint
	Middleware []func(Next) Next
	HasTx      bool
	Leased     bool // it has a Handle
	Faults     []error
}

// Consumer handles one kind, or with raw every kind that has no other consumer. Exactly one of def, tx, raw, leased
// and accept is set.
type Consumer struct {
	Kind       string
	What       string       // for error texts
	Type       reflect.Type // of the message, or nil
	Definition *saga.Definition
	Tx         func(context.Context, Call) (*Sends, error)
	Raw        func(context.Context, Call) (*Sends, error)
	Leased     func(context.Context, Call) (*Sends, error)
	// of a leased handler in an ordered endpoint, and of a HandleTx in a partitioned one
	Key    func(body []byte, codec saga.Codec) (string, error)
	Accept func(body []byte, codec saga.Codec) ([]byte, error)
	As     string // with accept: the kind it becomes

	Others []*Consumer // of other sagas for the same kind: their answers and timeouts, which name an instance
}

// Of returns the consumer of a kind for one saga, nil if that does not handle it.
func (c *Consumer) Of(d *saga.Definition) *Consumer {
	if c.Definition == d {
		return c
	}
	for _, other := range c.Others {
		if other.Definition == d {
			return other
		}
	}
	return nil
}

// New returns an empty table.
func New() *Table {
	return &Table{Consumers: map[string]*Consumer{}, Sagas: map[string]*saga.Definition{}}
}

// Next is a call of a handler, with or without middleware around it.
type Next = func(ctx context.Context, d *saga.Delivery) error

// Fault records a fault of the endpoint.
func (h *Table) Fault(format string, args ...any) {
	h.Faults = append(h.Faults, fmt.Errorf(format, args...))
}

// Add registers c. One kind has one consumer in an endpoint: a message is deleted once, so its effects must
// win or lose as one.
func (h *Table) Add(c *Consumer) bool {
	if err := saga.CheckName(c.Kind); err != nil {
		h.Fault("%s: kind %.80q: %w", c.What, c.Kind, err)
		return false
	}
	if _, err := secret.Of(c.Type); err != nil {
		h.Fault("%s: %w", c.What, err)
		return false
	}
	if old := h.Consumers[c.Kind]; old != nil {
		if c.Definition != nil && old.Of(c.Definition) != nil {
			return true // one saga may have two roles for a kind
		}
		if old.Definition != nil && c.Definition != nil {
			return h.share(old, c)
		}
		h.Fault("kind %s has two consumers, %s and %s: move one to an endpoint of its own, which gets "+
			"its own copy", c.Kind, old.What, c.What)
		return false
	}
	h.Consumers[c.Kind] = c
	return true
}

// CheckTypes refuses messages with fields that saga.JSON does not carry. It does not check messages of other codecs.
func (h *Table) CheckTypes(codec saga.Codec) {
	if codec != saga.JSON {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(h.Consumers)) {
		first := h.Consumers[kind]
		for _, c := range append([]*Consumer{first}, first.Others...) {
			if c.Type == nil {
				continue
			}
			for _, err := range fields.OfMessage(c.Type) {
				h.Fault("%s: message %v: %w", c.What, c.Type, err)
			}
		}
	}
}

// share lets two sagas have one kind, if at most one of them finds its instance by a key: an answer and a timeout
// name their instance, and that belongs to one saga.
func (h *Table) share(first, second *Consumer) bool {
	all := append([]*Consumer{first, second}, first.Others...)
	var keyed []string
	var gone *saga.KindInfo
	for _, c := range all {
		for _, k := range c.Definition.Kinds() {
			switch {
			case k.Kind != c.Kind || k.Role == saga.RoleTimeout:
			case k.Role == saga.RoleStart || k.Role == saga.RoleHandle:
				keyed = append(keyed, c.What)
			case k.Asks || gone != nil && gone.Missing != k.Missing:
				h.Fault("kind %s is an answer to %s and %s: an answer without an instance may belong to either, "+
					"so "+
					"give both the same IfMissing, and no IfMissingDo", c.Kind, first.What, second.What)
				return false
			default:
				gone = &k
			}
		}
	}
	if len(keyed) > 1 {
		h.Fault("kind %s has two consumers, %s and %s, and its messages name no instance: move one to an "+
			"endpoint "+
			"of its own, which gets its own copy of an event", first.Kind, keyed[0], keyed[1])
		return false
	}
	if len(keyed) == 1 && keyed[0] == second.What { // it goes first, for messages that name no instance
		second.Others, first.Others = append(first.Others, first), nil
		h.Consumers[first.Kind] = second
		return true
	}
	first.Others = append(first.Others, second)
	return true
}

// Subscribe makes the endpoint receive messages of kind, sent or published.
func (h *Table) Subscribe(kind string) {
	if !slices.Contains(h.Subscribed, kind) {
		h.Subscribed = append(h.Subscribed, kind)
	}
}

// Within returns the same handlers with a middleware outside of the others.
func (h *Table) Within(outermost func(Next) Next) *Table {
	within := *h
	within.Middleware = append([]func(Next) Next{outermost}, h.Middleware...)
	return &within
}

// Unsubscribed returns the same handlers for a queue without subscriptions.
func (h *Table) Unsubscribed() *Table {
	direct := *h
	direct.Subscribed = nil
	return &direct
}

// Kinds lists the kinds that the endpoint consumes, for error texts.
func (h *Table) Kinds() []string {
	var kinds []string
	for kind := range h.Consumers {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

var errCalledTwice = errors.New("a middleware called next twice in one step")

// Around calls call with d, inside the endpoint's middleware if there is any.
func (h *Table) Around(ctx context.Context, d *saga.Delivery, call Next) error {
	if len(h.Middleware) == 0 {
		return call(ctx, d)
	}
	own, ok := lents.Get().(*lent)
	if !ok {
		own = new(lent)
	}
	own.Info, own.Body = d.Info, own.copyOf(d.Body)
	w := wrapped{call: call}
	err := h.wrap(&w)(ctx, &own.Delivery)
	if w.ended.Load() { // otherwise a goroutine that still runs may use it
		own.Delivery = saga.Delivery{}
		lents.Put(own)
	}
	return err
}

// lent is the delivery that middleware receives. It is reused, except the memory of its bodies: a handler may keep
// them.
type lent struct {
	saga.Delivery
	room []byte // for more bodies
}

var lents sync.Pool

const (
	roomBytes = 4096 // a handler that keeps one body keeps this much memory
	roomBody  = 1024 // longest body that shares memory with others
)

// copyOf returns a copy of body that shares no memory with other bodies.
func (l *lent) copyOf(body []byte) []byte {
	if len(body) > roomBody {
		return bytes.Clone(body)
	}
	if len(body) > len(l.room) {
		l.room = make([]byte, roomBytes)
	}
	n := copy(l.room, body)
	own := l.room[:n:n]
	l.room = l.room[n:]
	return own
}

// wrapped is a call that has middleware around it.
type wrapped struct {
	call   Next
	called bool
	ended  atomic.Bool
}

func (w *wrapped) next(ctx context.Context, d *saga.Delivery) error {
	if w.called {
		return saga.Permanent(errCalledTwice)
	}
	w.called = true
	err := w.call(ctx, d)
	w.ended.Store(true)
	return err
}

// wrap wraps w in the endpoint's middleware.
func (h *Table) wrap(w *wrapped) Next {
	next := w.next
	for _, m := range slices.Backward(h.Middleware) {
		next = m(next)
	}
	return next
}

// CheckAccepts records a fault for each Accept that leads to no handler.
func (h *Table) CheckAccepts() {
	for kind, c := range h.Consumers {
		h.checkAccept(kind, c)
	}
}

// checkAccept follows a chain of Accepts to a handler.
func (h *Table) checkAccept(kind string, c *Consumer) {
	for range h.Consumers {
		if c.As == "" {
			return
		}
		next := h.Consumers[c.As]
		if next == nil && saga.CheckName(c.As) != nil {
			return // the handler of a bad kind has its own fault
		}
		if next == nil {
			h.Fault("Accept of %s: nothing in the endpoint handles %s", kind, c.As)
			return
		}
		c = next
	}
	if c.As != "" {
		h.Fault("Accept of %s: it goes in a circle, and no handler is in it", kind)
	}
}
