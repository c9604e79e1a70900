package bus

import (
	"context"
	"fmt"
)

// Install creates the endpoint's queue and subscribes it to its kinds. It needs the right to create tables, and does
// nothing if the endpoint is installed. Every event that is published after Install has returned reaches the queue.
// Install is safe for concurrent use, also in several processes.
func (e *Endpoint) Install(ctx context.Context) error {
	if err := e.bus.routes.Install(ctx, e.name, false, e.handlers.Subscribed); err != nil {
		return fmt.Errorf("install endpoint %s: %w", e.name, err)
	}
	return e.findLimit(ctx)
}

func (e *Endpoint) findQueue(ctx context.Context) (id int, err error) {
	return e.bus.routes.Find(ctx, e.name, e.bus.autoInstall)
}

// subscribe subscribes the endpoint to the kinds that it handles and has no subscription for.
func (e *Endpoint) subscribe(ctx context.Context, id int) error {
	return e.bus.routes.Subscribe(ctx, id, e.handlers.Subscribed)
}

// Unsubscribe ends the delivery of kinds to the endpoint: commands find no route to it, and events are not copied to
// it. Messages in the queue stay. A later Run of an endpoint that handles a kind subscribes it again.
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

// InstallQueue creates the queue of an endpoint and subscribes it to kinds, in addition to its other subscriptions.
// It is Endpoint.Install for programs that do not have the endpoint's handlers, such as a separate program with the
// right to create tables. It does nothing if the queue and the subscriptions exist.
//
// Errors: the endpoint or a kind has an invalid name; the role may not create tables; the schema is not migrated.
func (b *Bus) InstallQueue(ctx context.Context, endpoint string, kinds ...string) error {
	if err := b.routes.Install(ctx, endpoint, false, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}

// CheckQueue finds the queue of an endpoint, and creates it if Options.AutoInstall is set. If the queue does not
// exist, the error is ErrNotInstalled, with the remedy.
func (b *Bus) CheckQueue(ctx context.Context, endpoint string) error {
	if _, err := b.routes.Find(ctx, endpoint, b.autoInstall); err != nil {
		return fmt.Errorf("endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
