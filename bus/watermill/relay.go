package watermill

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// RelayOptions are the options of a relay. A zero field is a default; a negative number is an error.
type RelayOptions struct {
	outbox.RelayOptions

	Topic string // of the publisher; "" is the relay's name

	// Parallel is the number of messages that are published at a time; 0 is 1, at most 1,000. With more than one only
	// the messages of one Key keep their order: they are published one at a time, and different keys in parallel.
	Parallel int
	Key      func(*saga.Delivery) string // nil is the conversation
}

const mostParallel = 1000

// NewRelay makes a relay that publishes the messages of the queue called name, in their order, each at least once: see
// bus.NewRelay for name, kinds and the treatment of failures. The UUID is the message's id, which every repetition has;
// the metadata are outbox.Envelope and, under KindKey, the kind. Each message is one call of Publish, so that its error
// belongs to one message, unless publisher is a BatchPublisher.
//
// Headers are their author's: if a broker treats some of them as instructions, its publisher must leave these out, see
// docs/guide/brokers.md.
//
// The publisher stays the caller's: it is not closed. A Publish that panics or ends its goroutine has failed. A Publish
// that never returns is left after the drain, and Run returns without it.
func NewRelay(b *bus.Bus, name string, publisher message.Publisher, o RelayOptions, kinds ...string) (*outbox.Relay,
	error) {
	var f option.Faults
	if publisher == nil {
		f.Add(errors.New("the publisher is nil"))
	}
	f.Int("Parallel", &o.Parallel, 1, 1, mostParallel)
	if o.Key != nil && o.Parallel <= 1 {
		f.Add(errors.New("Key is set and Parallel is not: leave out Key, since all messages are already in order"))
	}
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("relay %.80q: %w", name, err)
	}
	w := &border{publisher: publisher, topic: o.Topic, parallel: o.Parallel, key: o.Key, permanent: o.Permanent,
		atOnce: batchMax(publisher)}
	option.Default(&w.topic, name)
	if w.key == nil {
		w.key = func(d *saga.Delivery) string { return string(d.Info.ConversationID[:]) }
	}
	return bus.NewRelay(b, name, o.RelayOptions, w.forward, kinds...)
}

// border is a topic of a publisher on the other side.
type border struct {
	publisher message.Publisher
	topic     string
	parallel  int
	key       func(*saga.Delivery) string
	permanent func(error) bool
	atOnce    int // messages of one Publish
}

func (w *border) forward(ctx context.Context, messages []*saga.Delivery) []error {
	// the errors of messages that are not reached, for instance because a goroutine ended
	errs := slices.Repeat([]error{outbox.ErrBehind}, len(messages))
	if w.parallel == 1 {
		all := make([]int, len(messages))
		for n := range all {
			all[n] = n
		}
		w.publishAll(ctx, messages, all, errs)
		return errs
	}
	lanes := w.lanes(messages, errs)
	next := make(chan []int, len(lanes))
	for _, lane := range lanes {
		next <- lane
	}
	close(next)
	group := run.NewGroup(context.WithoutCancel(ctx))
	for range min(w.parallel, len(lanes)) {
		group.Go(func(context.Context) error {
			for lane := range next {
				w.publishAll(ctx, messages, lane, errs) // each lane has separate places in errs
			}
			return nil
		})
	}
	_ = group.Wait() // its members return no errors
	return errs
}

// lanes returns the places of the messages, by their keys, in the order of the keys' first messages. If Key panics, the
// lanes end before that message: its key is unknown, and all messages behind it may have the same key.
func (w *border) lanes(messages []*saga.Delivery, errs []error) (lanes [][]int) {
	lane := map[string]int{}
	for n, m := range messages {
		key, err := w.keyOf(m)
		if err != nil {
			errs[n] = err
			break
		}
		at, known := lane[key]
		if !known {
			at = len(lanes)
			lane[key], lanes = at, append(lanes, nil)
		}
		lanes[at] = append(lanes[at], n)
	}
	return lanes
}

// keyOf calls the user's function.
func (w *border) keyOf(m *saga.Delivery) (key string, err error) {
	defer recovered("RelayOptions.Key: ", &err)
	return w.key(m), nil
}

func recovered(doing string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%s%w", doing, &saga.PanicError{Value: v, Stack: debug.Stack()})
	}
}

// publishAll publishes messages one at a time, or in batches, up to the first failure. The errors of the messages
// behind it stay. If a Publish ends the goroutine, its message keeps the error that was set before.
func (w *border) publishAll(ctx context.Context, messages []*saga.Delivery, places []int, errs []error) {
	for batch := range slices.Chunk(places, w.atOnce) {
		if len(batch) > 1 && ctx.Err() == nil && w.publishBatch(ctx, messages, batch, errs) {
			continue
		}
		for _, n := range batch {
			if ctx.Err() != nil {
				return
			}
			errs[n] = errExited
			if errs[n] = w.publish(ctx, messages[n]); errs[n] != nil && !w.ends(errs[n]) {
				return
			}
		}
	}
}

var errExited = errors.New("it ended its goroutine (runtime.Goexit, or FailNow of package testing)")

// ends reports whether an error ends its message, so that the messages behind it need not wait. If the user's function,
// or a method of the error, panics, ends returns false: the next judge of the error reports the panic.
func (w *border) ends(err error) (ends bool) {
	defer func() { _ = recover() }()
	var permanent *saga.PermanentError
	var discard *saga.DiscardError
	return errors.As(err, &permanent) || errors.As(err, &discard) || w.permanent != nil && w.permanent(err)
}

func (w *border) publish(ctx context.Context, deliveries ...*saga.Delivery) (err error) {
	defer recovered("", &err)
	all := make([]*message.Message, len(deliveries))
	for n, d := range deliveries {
		m := message.NewMessage(d.Info.ID.String(), d.Body)
		for name, value := range outbox.Envelope(&d.Info) {
			m.Metadata[name] = value
		}
		m.Metadata[KindKey] = d.Info.Kind
		m.SetContext(ctx)
		all[n] = m
	}
	return w.publisher.Publish(w.topic, all...)
}
