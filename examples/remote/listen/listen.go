package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"golang.org/x/sync/errgroup"
)

const (
	again = time.Second // after a broker that did not answer
	// Closing is for the handlers in hand when the program ends. The contexts of their messages have ended then, and
	// remote.MessageClient.Work takes up to five seconds to report work that is done.
	closing = 7 * time.Second
)

// Run gives the messages of a topic to handle until ctx ends. A Router ends when its first Subscribe fails, which it
// does while the broker is away: then Run starts a new Router with a new subscriber.
func Run(ctx context.Context, log *slog.Logger, topic string, subscribe func() (message.Subscriber, error),
	handle message.NoPublishHandlerFunc) error {
	for {
		err := once(ctx, log, topic, subscribe, handle)
		if ctx.Err() != nil {
			return err
		}
		log.Warn("the subscription has ended, and begins again", "topic", topic, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

func once(ctx context.Context, log *slog.Logger, topic string, subscribe func() (message.Subscriber, error),
	handle message.NoPublishHandlerFunc) error {
	subscriber, err := subscribe()
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closing}, stock.NewSlogLogger(log))
	if err != nil {
		return errors.Join(err, subscriber.Close())
	}
	router.AddConsumerHandler(topic, topic, subscriber, handle)
	var all errgroup.Group
	ended := make(chan struct{})
	all.Go(func() error {
		defer close(ended)
		return router.Run(context.WithoutCancel(ctx)) // the subscriber wants to be closed before its context ends
	})
	select {
	case <-ended:
		_ = subscriber.Close() // a part of it may have subscribed
		return fmt.Errorf("subscribe: %w", all.Wait())
	case <-router.Running():
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return errors.Join(router.Close(), all.Wait())
}
