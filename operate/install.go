package operate

import (
	"context"
	"fmt"
)

// Install creates the queue of an endpoint and subscribes it to kinds, in addition to its other subscriptions. It is
// bus.Endpoint.Install for programs that do not have the endpoint's handlers, such as a separate program with the
// right to create tables. If the queue and the subscriptions exist, it does nothing.
//
// It returns an error if the endpoint or a kind has an invalid name, the queue belongs to a relay, the role may not
// create tables, or the schema is not migrated.
func (q Queues) Install(ctx context.Context, endpoint string, kinds ...string) error {
	return q.install(ctx, endpoint, false, kinds)
}

// InstallRelay is Install for a relay: outbox.Relay.Install for programs that do not have the relay. It returns an
// error if an endpoint of that name has run.
func (q Queues) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	return q.install(ctx, name, true, kinds)
}

func (q Queues) install(ctx context.Context, endpoint string, relay bool, kinds []string) error {
	if err := q.o.routes.Install(ctx, endpoint, relay, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
