package bus

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/edda-go/edda/saga"
)

// Handle makes the endpoint handle M with f outside of any transaction, for work that takes long or talks to others.
// Such an endpoint is *leased*: it claims a message for EndpointOptions.Lease and extends that while f runs, so that a
// message whose process dies is taken again when the lease has ended. What f sends with ctx is written with the
// message's end, in one transaction, which fails when the claim was lost meanwhile: then nothing of it is sent. Effects
// outside the database are at least once: give ctx.Info().ID to the other side as an idempotency key.
//
// The context of f ends after StepTimeout, when the claim was lost (its cause is ErrClaimLost), when the message
// was cancelled by Bus.Cancel or its run is over (ErrCancelled), and when Run has drained in vain (ErrDrain).
//
// Handlers of one endpoint are either leased or in transactions: Handle with Saga, HandleTx or HandleRaw is a
// fault of NewEndpoint. Give them two endpoints.
func Handle[M saga.Message](f func(*Context, M) error, o ...HandleOption[M]) Part {
	return part(func(h *handlers) {
		kind := kindOf[M]()
		if f == nil {
			h.fault("Handle of %s: the handler is nil", kind)
			return
		}
		h.leased = true
		c := &consumer{kind: kind, what: "Handle of " + reflect.TypeFor[M]().String(),
			leased: func(ctx *Context, body []byte, codec saga.Codec) error {
				var m M
				if err := codec.Decode(body, &m); err != nil {
					return saga.Permanent(fmt.Errorf("decode %s: %w", kind, err))
				}
				return f(ctx, m)
			},
			key: keyOption(kind, o)}
		if h.add(c) {
			h.subscribe(kind)
		}
	})
}

// checkModes: a message is either consumed in the transaction of its effects, or claimed. An endpoint cannot do both to
// one queue.
func (h *handlers) checkModes() {
	if h.leased && (h.hasTx || h.raw != nil || len(h.sagas) > 0) {
		h.fault("it mixes Handle, which runs outside of transactions, with handlers that run inside (Saga, " +
			"HandleTx, HandleRaw): make two endpoints of it")
	}
}

// Ordering is whether a leased endpoint handles the messages of one key one after another.
type Ordering uint8

// What becomes of the followers of a message that failed is the difference between the last two. In both, at most one
// message of a key is in hand in the whole cluster, and they come in the order in which they are due.
//
// An endpoint may become Unordered with a deploy. While old and new programs run beside each other nothing is promised
// about order. What old ones leave behind them goes back into the queue soon after they have ended.
const (
	Unordered  Ordering = iota // the default
	Overtaking                 // they go on; the message takes its turn again when its retry is due
	Strict                     // they wait until it succeeds, is discarded or is dead
)

// HandleOption is an option of Handle and HandleTx.
type HandleOption[M saga.Message] func(*handleOptions[M])

type handleOptions[M saga.Message] struct{ key func(M) string }

// KeyedBy says what a message belongs to: of a Handle in an endpoint that is Ordered, or of a HandleTx in a partitioned
// one (NewPartitioned). The key is at most 512 bytes of UTF-8, and not empty: else the message is dead on its first
// attempt. The function must be quick and always give the same.
func KeyedBy[M saga.Message](key func(M) string) HandleOption[M] {
	return func(o *handleOptions[M]) { o.key = key }
}

// keyOption is the key of a consumer that was given these options, nil when it has none.
func keyOption[M saga.Message](kind string, o []HandleOption[M]) func(body []byte, codec saga.Codec) (string, error) {
	var options handleOptions[M]
	for _, set := range o {
		set(&options)
	}
	if options.key == nil {
		return nil
	}
	return func(body []byte, codec saga.Codec) (string, error) {
		var m M
		if err := codec.Decode(body, &m); err != nil {
			return "", fmt.Errorf("decode %s: %w", kind, err)
		}
		return options.key(m), nil
	}
}

const mostKey = 512 // bytes

// checkOrder: in an ordered endpoint every kind has a key, and in no other one has.
func (h *handlers) checkOrder(o Ordering) {
	if o > Strict {
		h.fault("Ordered is %d: want Unordered, Overtaking or Strict", o)
	}
	if o != Unordered && !h.leased {
		h.fault("Ordered is for endpoints with Handle: the steps of one saga instance never run at the same time")
		return
	}
	for kind, c := range h.consumers {
		switch {
		case c.leased == nil:
		case o != Unordered && c.key == nil:
			h.fault("%s has no key: an endpoint that is Ordered needs a KeyedBy for every Handle", kind)
		case o == Unordered && c.key != nil:
			h.fault("%s has a key and the endpoint no order: set EndpointOptions.Ordered to Overtaking or Strict", kind)
		}
	}
}

// keyOf asks the user's function, which may panic.
func (m *message) keyOf(codec saga.Codec) (key string, err error) {
	defer recovered(&err)
	key, err = m.consumer.key(m.delivery.Body, codec)
	switch {
	case err != nil:
	case key == "" || len(key) > mostKey:
		err = fmt.Errorf("the key has %d bytes, want 1 to %d", len(key), mostKey)
	case strings.ToValidUTF8(key, "") != key || strings.ContainsRune(key, 0):
		err = fmt.Errorf("the key is not UTF-8 text without NUL")
	}
	return key, err
}
