package outbox

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
)

// InstallRelay creates a relay's queue and subscribes it to kinds. It is Relay.Install for programs that do not have
// the relay. It does nothing when all of it was done before, and fails when an endpoint of that name has run.
func (b *Border) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	if err := b.Routes.Install(ctx, name, true, kinds); err != nil {
		return fmt.Errorf("install endpoint %.80q: %w", name, err)
	}
	return nil
}

// prepareRelay makes sure of a relay's queue and its mark, as far as it may.
func (b *Border) prepareRelay(ctx context.Context, name string) (id int, err error) {
	id, err = b.Routes.Find(ctx, name, b.AutoInstall)
	if err != nil {
		return 0, err
	}
	is, err := b.Routes.IsRelay(ctx, name)
	if is || err != nil {
		return id, err
	}
	if !b.AutoInstall {
		return 0, fmt.Errorf("%w: call Relay.Install, or run the command \"edda migrate install --relay %s\", "+
			"or set bus.Options.AutoInstall", queue.ErrNotInstalled, name)
	}
	if err := b.Routes.MarkRelay(ctx, name); err != nil {
		if pg.ClassOf(err) == pg.Denied {
			return 0, fmt.Errorf("%w: %w (let the owner of the schema install it once, with Relay.Install or "+
				"the command "+
				"\"edda migrate install --relay %s\")", queue.ErrNotInstalled, err, name)
		}
		return 0, err
	}
	return id, b.Routes.CheckRelay(ctx, name, true)
}
