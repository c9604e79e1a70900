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

// InstallQueue creates the queue of an endpoint and subscribes it to kinds, on top of what it is subscribed to. It is
// Endpoint.Install for programs that do not have the endpoint's handlers, such as those that run with the right to
// create tables. It does nothing when all of it was done before.
//
// Errors: the name or a kind is no name; the role may not create tables; the schema is not migrated.
func (b *Bus) InstallQueue(ctx context.Context, endpoint string, kinds ...string) error {
	if err := b.routes.Install(ctx, endpoint, false, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}

// CheckQueue finds the queue of an endpoint, and creates it where Options.AutoInstall says so. ErrNotInstalled says
// that there is none and what to do.
func (b *Bus) CheckQueue(ctx context.Context, endpoint string) error {
	if _, err := b.routes.Find(ctx, endpoint, b.autoInstall); err != nil {
		return fmt.Errorf("endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
