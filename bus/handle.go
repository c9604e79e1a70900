package bus

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
)

// Handle makes the endpoint handle M with f outside of any transaction, for work that takes long or calls other
// systems. Such an endpoint is *leased*. It claims a message for EndpointOptions.Lease and extends the lease while f
// runs. If the process dies, another process claims the message when the lease has ended. Messages that f sends with
// ctx are written together with the end of the message, in one transaction. If the claim was lost in the meantime, that
// transaction fails, and nothing is sent. Effects outside of the database happen at least once: give ctx.Info().ID to
// the other system as an idempotency key. f may be called concurrently.
//
// The context of f ends after StepTimeout, when the claim is lost (its cause is ErrClaimLost), when
// operate.Messages.Cancel cancels the message or its run is over (ErrCancelled), and when the time to drain has ended
// (ErrDrain).
//
// Handlers of one endpoint are either leased or in transactions: NewEndpoint refuses Handle beside Saga, HandleTx or
// HandleRaw. Use two endpoints.
func Handle[M saga.Message](f func(*Context, M) error, o ...HandleOption[M]) Part {
	return part(func(h *handlers.Table) {
		options := newHandleOptions(o)
		kind := options.kind
		if f == nil {
			h.Fault("Handle of %s: the handler is nil", kind)
			return
		}
		h.Leased = true
		c := &handlers.Consumer{Kind: kind, What: "Handle of " + reflect.TypeFor[M]().String(),
			Type: reflect.TypeFor[M](),
			Leased: plain(func(c *Context, of *handlers.Call, d *saga.Delivery) error {
				m, err := decode[M](kind, d.Body, of.Runtime.Codec)
				if err != nil {
					return saga.Permanent(err)
				}
				return f(c, m)
			}),
			Key: options.readKey()}
		if h.Add(c) {
			h.Subscribe(kind)
		}
	})
}

// checkModes refuses leased and transactional handlers in one endpoint.
func checkModes(h *handlers.Table) {
	if h.Leased && (h.HasTx || h.Raw != nil || len(h.Sagas) > 0) {
		h.Fault("it mixes Handle, which runs outside of transactions, with handlers that run inside (Saga, " +
			"HandleTx, HandleRaw): make two endpoints of it")
	}
}

// Ordering determines whether a leased endpoint handles the messages of one key in order.
type Ordering uint8

// With Overtaking and Strict, at most one message of a key is in hand in the whole cluster, and they come in the order
// of their due times. The two differ in the treatment of the messages behind a message that has failed.
//
// An endpoint may become Unordered with a deploy. While old and new programs run at the same time, no order is
// promised. Messages that the old programs leave parked return to the queue soon after these programs have ended.
const (
	Unordered  Ordering = iota // the default
	Overtaking                 // they are handled, and the failed message comes again when its retry is due
	Strict                     // they wait until it succeeds, is discarded or becomes a dead letter
)

// HandleOption is an option of Handle and HandleTx.
type HandleOption[M saga.Message] func(*handleOptions[M])

type handleOptions[M saga.Message] struct {
	kind string
	key  func(M) string
}

func newHandleOptions[M saga.Message](o []HandleOption[M]) handleOptions[M] {
	var options handleOptions[M]
	for _, set := range o {
		set(&options)
	}
	if options.kind == "" {
		options.kind = kindOf[M]()
	}
	return options
}

// OfKind makes Handle and HandleTx of saga.Raw handle the messages of a kind as bytes: for programs that have no Go
// type for them, and for bridges to other libraries. Context.Info has their headers.
func OfKind(kind string) HandleOption[saga.Raw] {
	return func(o *handleOptions[saga.Raw]) { o.kind = kind }
}

// KeyedBy sets the function that returns the key of a message. A Handle in an endpoint that is Ordered needs it, and a
// HandleTx in a partitioned endpoint (NewPartitioned). The key is 1 to 512 bytes of UTF-8: with any other key the
// message becomes a dead letter on its first attempt. The function must be quick, must always return the same key for
// the same message, and may be called concurrently.
func KeyedBy[M saga.Message](key func(M) string) HandleOption[M] {
	return func(o *handleOptions[M]) { o.key = key }
}

// decode makes an M of a body. A saga.Raw gets a copy.
func decode[M saga.Message](kind string, body []byte, codec saga.Codec) (m M, err error) {
	if raw, is := any(&m).(*saga.Raw); is {
		*raw = saga.Raw{Name: kind, Body: bytes.Clone(body)}
		return m, nil
	}
	if err = codec.Decode(body, &m); err != nil {
		err = fmt.Errorf("decode %s: %w", kind, err)
	}
	return m, err
}

// readKey returns the function that reads the key of a message, or nil if the options have no key.
func (o handleOptions[M]) readKey() func(body []byte, codec saga.Codec) (string, error) {
	if o.key == nil {
		return nil
	}
	return func(body []byte, codec saga.Codec) (string, error) {
		m, err := decode[M](o.kind, body, codec)
		if err != nil {
			return "", err
		}
		return o.key(m), nil
	}
}

// checkOrder refuses kinds without a key in an ordered endpoint, and kinds with a key in an endpoint without order.
func checkOrder(h *handlers.Table, o Ordering) {
	if o > Strict {
		h.Fault("Ordered is %d: want Unordered, Overtaking or Strict", o)
	}
	if o != Unordered && !h.Leased {
		h.Fault("Ordered is for endpoints with Handle: the steps of one saga instance never run at the same time")
		return
	}
	for kind, c := range h.Consumers {
		switch {
		case c.Leased == nil:
		case o != Unordered && c.Key == nil:
			h.Fault("%s has no key: an endpoint that is Ordered needs a KeyedBy for every Handle", kind)
		case o == Unordered && c.Key != nil:
			h.Fault("%s has a KeyedBy, and the endpoint is Unordered: set EndpointOptions.Ordered to Overtaking or "+
				"Strict", kind)
		}
	}
}
