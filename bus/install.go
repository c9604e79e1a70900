package bus

import (
	"context"
	"fmt"
)

// Install creates the endpoint's queue and subscribes it to its kinds. It needs the right to create tables, and
// does nothing when that was done before. When it returns, every event published from then on reaches the queue.
func (e *Endpoint) Install(ctx context.Context) error {
	if err := e.bus.routes.Install(ctx, e.name, false, e.handlers.Subscribed); err != nil {
		return fmt.Errorf("install endpoint %s: %w", e.name, err)
	}
	return e.findLimit(ctx)
}

func (e *Endpoint) findQueue(ctx context.Context) (id int, err error) {
	return e.bus.routes.Find(ctx, e.name, e.bus.autoInstall)
}

// subscribe adds the endpoint's kinds, as far as they are not subscribed yet.
func (e *Endpoint) subscribe(ctx context.Context, id int) error {
	return e.bus.routes.Subscribe(ctx, id, e.handlers.Subscribed)
}

// Unsubscribe ends the delivery of kinds to the endpoint: commands find no route to it, events no copy. What is
// in the queue stays. A later Run of an endpoint that handles a kind subscribes it again.
func (e *Endpoint) Unsubscribe(ctx context.Context, kinds ...string) error {
	b := e.bus
	id, err := b.routes.Find(ctx, e.name, false)
	if err == nil {
		err = b.routes.Unsubscribe(ctx, id, kinds)
	}
	if err != nil {
		return fmt.Errorf("unsubscribe endpoint %s: %w", e.name, err)
	}
	return nil
}
