package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	pullExpires = 2 * time.Second // after which a reader sends a new request, and so shows that it is alive
	pullBeat    = time.Second     // a reader that hears nothing from the server for two of them begins a new reading
	pinHeader   = "Nats-Pin-Id"
)

// begin resets the consumer to the first message that was not acked, and reads on from there. Deliveries are counted
// from 1 again, and no reader has a message in hand.
//
// Only the reader that the server has pinned may call it: otherwise two readers would take each other's messages for
// ever.
func (r *reading) begin(ctx context.Context) (natsjs.MessagesContext, error) {
	if !r.mine {
		if err := r.becomePinned(ctx); err != nil {
			return nil, fmt.Errorf("wait to be the reader of consumer %s of stream %s: %w", r.name, r.options.Stream,
				err)
		}
	}
	if err := r.reset(ctx); err != nil {
		return nil, err
	}
	return r.messages(natsjs.PullMaxMessages(r.options.InHand))
}

func (r *reading) messages(more ...natsjs.PullMessagesOpt) (natsjs.MessagesContext, error) {
	all := append(more, natsjs.PullExpiry(pullExpires), natsjs.PullHeartbeat(pullBeat), natsjs.PullPriorityGroup(Group),
		natsjs.WithMessagesErrOnMissingHeartbeat(true))
	messages, err := r.consumer.Messages(all...)
	if err != nil {
		return nil, fmt.Errorf("read consumer %s of stream %s: %w", r.name, r.options.Stream, err)
	}
	return messages, nil
}

// becomePinned waits for a first message, which has the id of the pin. It may be any message: after the reset it is
// delivered again in its turn. When becomePinned returns, no request is pending.
func (r *reading) becomePinned(ctx context.Context) error {
	for {
		messages, err := r.messages(natsjs.StopAfter(1))
		if err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, pullExpires)
		first, err := messages.Next(natsjs.NextContext(within))
		cancel()
		messages.Stop()
		switch {
		case err == nil:
			r.pin = first.Headers().Get(pinHeader)
			return nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		if err := r.freeTheDead(ctx); err != nil {
			return err
		}
	}
}

// freeTheDead resets the consumer if dead readers have messages in hand, and so need not wait for AckWait.
func (r *reading) freeTheDead(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	info, err := r.consumer.Info(within)
	if err != nil || info.NumAckPending == 0 {
		return err
	}
	for _, group := range info.PriorityGroups {
		if group.PinnedClientID != "" && group.PinnedClientID != r.pin {
			return nil // a different reader is alive
		}
	}
	return r.reset(ctx)
}

func (r *reading) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	stream, err := r.js.Stream(ctx, r.options.Stream)
	if err == nil {
		_, err = stream.ResetConsumer(ctx, r.name)
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, natsjs.ErrJetStreamNotEnabled) {
		err = fmt.Errorf("%w (nats-server has it since 2.14)", err)
	}
	if err != nil {
		return fmt.Errorf("reset consumer %s of stream %s: %w", r.name, r.options.Stream, err)
	}
	return nil
}
