package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/run"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// The reasons why a reading ends.
var (
	errNacked = errors.New("a message was nacked")
	errGap    = errors.New("a message is missing, or came again, before the next one")
)

// reading reads the consumer from its ack floor on, without a gap: it delivers the stream, message by message, from the
// first that was not acked. It ends at the first sign of a deviation.
//
// So a receiver that stores messages in their order has stored all earlier messages. A second reader, or an earlier one
// that has not ended, delivers the same messages in the same order, and an inbox drops them. Hence the order does not
// depend on a single reader; the pin of the server only keeps two readers from taking each other's messages for ever.
//
// The guarantee: all messages of a reading come under one pin, and the first of them is delivery number 1 after a reset
// to the ack floor. A later reset by any client makes the next delivery number 1 again. It comes to the pinned reader,
// which then ends; or a different reader has been pinned, and no more messages come under this pin.
type reading struct {
	*subscription
	given int // messages

	slots   chan struct{} // each message that is delivered and not answered takes one
	inHand  chan handed
	context context.Context // of all delivered messages
	end     context.CancelCauseFunc
}

// handed is a message that was delivered.
type handed struct {
	message *message.Message
	wire    natsjs.Msg
}

// newReading makes a reading whose messages outlive ctx, to be answered.
func newReading(ctx context.Context, s *subscription) *reading {
	r := &reading{subscription: s, slots: make(chan struct{}, s.options.InHand),
		inHand: make(chan handed, s.options.InHand)}
	r.context, r.end = context.WithCancelCause(watermill.InOrder(context.WithoutCancel(ctx)))
	return r
}

// run reads until ctx ends, a message is nacked, or the order is in doubt. It returns when all messages in hand are
// answered, or Drain has passed.
func (r *reading) run(ctx context.Context) error {
	defer r.end(nil)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	//nolint:contextcheck // that of the messages, which outlive ctx to be answered
	defer context.AfterFunc(r.context, func() { stop(context.Cause(r.context)) })()
	group := run.NewGroup(context.WithoutCancel(ctx))
	group.Go(func(context.Context) error {
		defer close(r.inHand)
		stop(r.read(reading))
		return nil
	})
	group.Go(func(context.Context) error {
		r.answerAll(reading)
		return nil
	})
	_ = group.Wait() // its members return no errors
	return context.Cause(reading)
}

// read delivers messages, and returns the reason why it stops.
func (r *reading) read(ctx context.Context) error {
	messages, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer messages.Stop()
	last, ours := natsjs.SequencePair{}, r.pin
	for {
		wire, err := messages.Next(natsjs.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("wait for the next message: %w", err)
		}
		at, err := wire.Metadata()
		if err != nil {
			return fmt.Errorf("read the place of a message: %w", err)
		}
		r.pin = wire.Headers().Get(pinHeader) // a different pin is ours, too, but a second reader may have read before
		if r.pin != ours || at.Sequence.Consumer != last.Consumer+1 || at.Sequence.Stream <= last.Stream ||
			at.NumDelivered > 1 {
			return fmt.Errorf("%w: delivery %d of message %d came as number %d under pin %s, after number %d, "+
				"which was message %d, under pin %s",
				errGap, at.NumDelivered, at.Sequence.Stream, at.Sequence.Consumer, r.pin, last.Consumer, last.Stream,
				ours)
		}
		last = at.Sequence
		if err := r.give(ctx, wire, at); err != nil {
			return err
		}
	}
}

// give waits for a slot, and for a receiver.
func (r *reading) give(ctx context.Context, wire natsjs.Msg, at *natsjs.MsgMetadata) error {
	m := fromWire(wire, at)
	m.SetContext(r.context) //nolint:contextcheck // as above
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := r.withdrawn(); err != nil {
		return err
	}
	select {
	case r.out <- m:
	case <-r.context.Done(): // it ends ctx, but a moment later, and no message may be delivered in between
		return r.withdrawn()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.given++
	r.inHand <- handed{m, wire} // there is room, since there was a slot
	return nil
}

// withdrawn returns the reason why no more messages may be delivered, or nil.
func (r *reading) withdrawn() error { return context.Cause(r.context) }

// answerAll acks the acked messages to JetStream, in order, up to the first that was not acked. After the end of ctx it
// waits for Drain at most.
func (r *reading) answerAll(ctx context.Context) {
	patience, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	defer context.AfterFunc(ctx, func() {
		_ = run.Sleep(patience, r.options.Drain) // over ends it, too
		over()
	})()
	for h := range r.inHand {
		if err := answerOf(patience, h.message); err != nil {
			r.end(err)
			break
		}
		_ = h.wire.Ack() // if it is lost, the message is delivered again
		<-r.slots
	}
	r.giveBack(patience)
}

// giveBack waits for the answers to the messages behind a message that was not acked, so that a receiver has messages
// of one reading at a time. It acks none of them to JetStream.
func (r *reading) giveBack(patience context.Context) {
	for h := range r.inHand {
		_ = answerOf(patience, h.message)
	}
}

func answerOf(patience context.Context, m *message.Message) error {
	select {
	case <-m.Acked():
		return nil
	case <-m.Nacked():
		return errNacked
	case <-patience.Done():
	}
	select {
	case <-m.Acked(): // at the same moment
		return nil
	default:
		return errors.New("it was not answered in time")
	}
}
