package operate

import (
	"context"
	"fmt"
)

// InstallQueue creates the queue of an endpoint and subscribes it to kinds, on top of what it is subscribed to. It is
// bus.Endpoint.Install for programs that do not have the endpoint's handlers, such as those that run with the right to
// create tables. It does nothing when all of it was done before.
//
// Errors: the name or a kind is no name; the queue is a relay's; the role may not create tables; the schema is not
// migrated.
func (o *Operator) InstallQueue(ctx context.Context, endpoint string, kinds ...string) error {
	return o.install(ctx, endpoint, false, kinds)
}

// InstallRelay is InstallQueue for a relay: outbox.Relay.Install for programs that do not have it. It fails when an
// endpoint of that name has run.
func (o *Operator) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	return o.install(ctx, name, true, kinds)
}

func (o *Operator) install(ctx context.Context, endpoint string, relay bool, kinds []string) error {
	if err := o.routes.Install(ctx, endpoint, relay, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
