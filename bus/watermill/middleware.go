package watermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// Middleware puts a middleware of Watermill's Router around the handlers of an endpoint:
//
//	bus.Use(watermill.Middleware(middleware.Recoverer), watermill.Middleware(throttle.Middleware))
//
// The middleware gets the message, with its context, and the handler's error. The handler returns no messages, because
// the sends of an endpoint are part of its transaction. Changes of the payload or metadata do not reach the handler.
//
// Recoverer, Timeout, Throttle, CircuitBreaker, RandomFail and a Deduplicator work as they do in a Router.
// CorrelationID and Duplicator have no use here: messages of Edda carry their conversation. Retry calls the handler
// more than once, which the bus refuses with a permanent error: use the endpoint's policy. PoisonQueue, DelayOnError
// and IgnoreErrors hide the handler's error, so its effects would commit: use dead letters, a policy, saga.Discard.
// While a middleware sleeps (Throttle), the batch's transaction stays open.
func Middleware(m message.HandlerMiddleware) bus.Middleware {
	if m == nil {
		return nil // Use reports the fault
	}
	return func(next bus.Handler) bus.Handler {
		return func(ctx context.Context, d *saga.Delivery) error {
			//nolint:contextcheck // its context is ctx, with what the middleware made of it
			handler := m(func(seen *message.Message) ([]*message.Message, error) {
				return nil, next(seen.Context(), d)
			})
			seen := fromDelivery(d)
			seen.SetContext(context.WithValue(ctx, infoKey{}, d.Info))
			_, err := handler(seen)
			return err
		}
	}
}
