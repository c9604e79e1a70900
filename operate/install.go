package operate

import (
	"context"
	"fmt"
)

// Install creates the queue of an endpoint and subscribes it to kinds, on top of what it is subscribed to. It is
// bus.Endpoint.Install for programs that do not have the endpoint's handlers, such as those that run with the right to
// create tables. It does nothing when all of it was done before.
//
// Errors: the name or a kind is no name; the queue is a relay's; the role may not create tables; the schema is not
// migrated.
func (q Queues) Install(ctx context.Context, endpoint string, kinds ...string) error {
	return q.install(ctx, endpoint, false, kinds)
}

// InstallRelay is Install for a relay: outbox.Relay.Install for programs that do not have the relay. It fails if an
// endpoint of that name has run.
func (q Queues) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	return q.install(ctx, name, true, kinds)
}

func (q Queues) install(ctx context.Context, endpoint string, relay bool, kinds []string) error {
	if err := q.o.routes.Install(ctx, endpoint, relay, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
