package bus

import (
	"context"
	"fmt"
)

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
