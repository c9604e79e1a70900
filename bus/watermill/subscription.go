package watermill

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/saga"
)

// The errors that a Policy gets.
var (
	errNacked     = errors.New("the subscriber nacked it")
	errUnanswered = errors.New("the subscriber neither acked nor nacked it in time")
)

// subscription is one call of Subscribe: an endpoint whose steps wait for the receiver's answer.
type subscription struct {
	options SubscriberOptions
	out     chan *message.Message
	group   *run.Group
	closing chan struct{} // closed when no more messages may be delivered
}

func newSubscription(ctx context.Context, o SubscriberOptions) *subscription {
	return &subscription{options: o, out: make(chan *message.Message), group: run.NewGroup(ctx),
		closing: make(chan struct{})}
}

// start runs the endpoint until the group's context ends. ended is called after the last message.
func (s *subscription) start(e *bus.Endpoint, ended func()) {
	s.group.Go(func(ctx context.Context) error {
		<-ctx.Done()
		close(s.closing)
		return nil
	})
	s.group.Go(func(ctx context.Context) error {
		defer ended()
		defer close(s.out)
		s.keepRunning(ctx, e)
		return nil
	})
}

// keepRunning starts the endpoint again when it ended with an error: the channel stays open until the caller ends it.
func (s *subscription) keepRunning(ctx context.Context, e *bus.Endpoint) {
	retry := patience()
	for ctx.Err() == nil {
		begun := time.Now()
		err := e.Run(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.options.Logger.Error("edda: a Watermill subscription ended and is started again", "queue", e.Name(), "error",
			err)
		if run.Sleep(ctx, retry.AfterRun(begun)) != nil {
			return
		}
	}
}

// hand delivers one message and waits for the answer, in the step of the batch that took it. The batch deletes the
// message only after an ack.
func (s *subscription) hand(step *bus.Context, d *saga.Delivery) error {
	in := &hand{step: step}
	defer in.end() // before the step's effects are read
	ctx, cancel := context.WithTimeout(inHand(step, in, d.Info), s.options.AckDeadline)
	defer cancel()
	m := fromDelivery(d)
	m.Payload = append(message.Payload(nil), m.Payload...) // the batch uses its memory again
	m.SetContext(ctx)
	select {
	case <-s.closing: // first: the channel may be ready although its receiver has gone
		return bus.ErrLeave
	default:
	}
	select {
	case s.out <- m:
	case <-s.closing:
		return bus.ErrLeave
	case <-ctx.Done():
		return bus.ErrLeave // it was not received, so no handler failed
	}
	select {
	case <-m.Acked():
		return nil
	case <-m.Nacked():
		return s.refused(errNacked)
	case <-s.closing:
	case <-ctx.Done():
	}
	return s.unanswered(m)
}

// unanswered decides when the time is over. An answer that came at the same moment counts.
func (s *subscription) unanswered(m *message.Message) error {
	select {
	case <-m.Acked():
		return nil
	case <-s.closing:
		return bus.ErrLeave
	default:
		return s.refused(errUnanswered)
	}
}

// refused keeps the message at its place, unless there is a policy to judge it.
func (s *subscription) refused(err error) error {
	if s.options.Policy == nil {
		return bus.ErrLeave
	}
	return err
}
