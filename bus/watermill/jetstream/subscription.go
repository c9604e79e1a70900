package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/base/run"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// subscription is one call of Subscribe: one reading after the other.
type subscription struct {
	js       natsjs.JetStream
	options  SubscriberOptions
	name     string          // of the consumer
	consumer natsjs.Consumer // one for all readings: it keeps the pin, and sends it with each request
	out      chan *message.Message
	group    *run.Group
	pin      string // the last pin that the server gave us
	mine     bool   // no other reader can have read since the last reading
}

// check finds the consumer, and returns an error if messages would be lost or overtaken with it.
func (s *subscription) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	consumer, err := s.js.Consumer(ctx, s.options.Stream, s.name)
	if err != nil {
		return fmt.Errorf("read consumer %s of stream %s: %w", s.name, s.options.Stream, err)
	}
	s.consumer = consumer
	var faults []error
	refuse := func(when bool, text string, about ...any) {
		if when {
			faults = append(faults, fmt.Errorf(text, about...))
		}
	}
	c := consumer.CachedInfo().Config
	refuse(c.DeliverSubject != "", "it is a push consumer, want a pull consumer")
	refuse(c.Durable == "", "it is not durable, so its position is lost with its reader")
	refuse(c.InactiveThreshold != 0, "the server deletes it after %v without a reader: want no InactiveThreshold",
		c.InactiveThreshold)
	refuse(c.AckPolicy != natsjs.AckExplicitPolicy, "its AckPolicy is %v, want explicit", c.AckPolicy)
	refuse(c.MaxDeliver > 0, "a message is dropped after %d deliveries: want MaxDeliver -1", c.MaxDeliver)
	refuse(c.MaxAckPending > 0 && c.MaxAckPending < s.options.InHand, "its MaxAckPending is %d, and InHand %d",
		c.MaxAckPending, s.options.InHand)
	refuse(c.HeadersOnly, "it gives headers without bodies")
	refuse(c.PriorityPolicy != natsjs.PriorityPolicyPinned || !slices.Equal(c.PriorityGroups, []string{Group}),
		"it lets several readers take messages: want PriorityPolicy pinned_client and PriorityGroups [%s]", Group)
	refuse(c.PinnedTTL <= pullExpires, "its PinnedTTL is %v, want more than %v", c.PinnedTTL, pullExpires)
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("consumer %s of stream %s: %w", s.name, s.options.Stream, err)
	}
	return nil
}

// keepReading reads until ctx ends. When a reading ends earlier, no message is lost: the next reading begins with the
// first message that was not acked.
func (s *subscription) keepReading(ctx context.Context) {
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		r := newReading(ctx, s)
		err := r.run(ctx)
		if ctx.Err() != nil {
			s.leave(ctx)
			return
		}
		s.mine = errors.Is(err, errNacked)
		if r.given > 0 {
			retry.Reset()
		}
		s.options.Logger.Info("edda: reading from JetStream ended and is started again", "stream", s.options.Stream,
			"consumer", s.name, "error", err)
		_ = run.Sleep(ctx, run.Jitter(retry.NextBackOff())) // its end is the loop's
	}
}

// leave unpins this reader, so that the next reader can begin at once and need not wait for the PinnedTTL of the
// consumer. It takes a second at most, and ignores errors.
func (s *subscription) leave(ctx context.Context) {
	if s.pin == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if stream, err := s.js.Stream(ctx, s.options.Stream); err == nil {
		_ = stream.UnpinConsumer(ctx, s.name, Group)
	}
}
