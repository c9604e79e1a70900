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

// Why a reading ends.
var (
	errNacked = errors.New("a message was nacked")
	errGap    = errors.New("a message is missing, or came again, before the next one")
)

// reading is the consumer from its ack floor on, without a gap: what is given out is the stream, message by message,
// from the first that was not acked. It ends at the first sign that it would be otherwise.
//
// So a reader that takes in what comes, in its order, has taken in all before it. Another reader, or an earlier one
// that is slow to die, gives the same messages in the same order, which an inbox knows. Hence the order does not depend
// on there being one reader; the pin of the server only keeps two of them from taking each other's messages for ever.
//
// What makes it sure: all messages of a reading come under one pin, and the first of them is delivery number 1 after a
// reset to the ack floor. A later reset by anybody makes the next delivery number 1 again, and it comes to the pinned
// reader, which then ends; or another was pinned meanwhile, and nothing more comes under this pin.
type reading struct {
	*subscription
	given int // messages

	slots   chan struct{} // one is taken by each message that is given out and not answered
	inHand  chan handed
	context context.Context // of all messages given out
	end     context.CancelCauseFunc
}

// handed is a message that was given out.
type handed struct {
	message *message.Message
	wire    natsjs.Msg
}

// newReading makes one whose messages outlive ctx, to be answered.
func newReading(ctx context.Context, s *subscription) *reading {
	r := &reading{subscription: s, slots: make(chan struct{}, s.options.InHand),
		inHand: make(chan handed, s.options.InHand)}
	r.context, r.end = context.WithCancelCause(watermill.InOrder(context.WithoutCancel(ctx)))
	return r
}

// run reads until ctx ends, a message is nacked, or the order is in doubt. It returns when all in hand is answered, or
// Drain has passed.
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
	_ = group.Wait() // its members have no errors to tell
	return context.Cause(reading)
}

// read gives messages out, and returns why it does no more.
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
		r.pin = wire.Headers().Get(pinHeader) // another one is ours, too, but who read before we were given it?
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

// give waits for room, and for a receiver.
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
	case <-r.context.Done(): // it ends ctx, but a moment later, and nothing may be given out in between
		return r.withdrawn()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.given++
	r.inHand <- handed{m, wire} // there is room, since there was a slot
	return nil
}

// withdrawn is why nothing more is given out, or nil.
func (r *reading) withdrawn() error { return context.Cause(r.context) }

// answerAll acks to JetStream what was acked, one after another, up to the first that was not. After the end of ctx it
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
		_ = h.wire.Ack() // one that gets lost is a message given again
		<-r.slots
	}
	r.giveBack(patience)
}

// giveBack lets a receiver finish with what it still has in hand behind a message that was not acked, so that it need
// not hold two readings at a time. None of it is acked.
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
