package outbox

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pgerr"
	"github.com/edda-go/edda/internal/queue"
)

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
		if pgerr.ClassOf(err) == pgerr.Denied {
			return 0, fmt.Errorf("%w: %w (let the owner of the schema install it once, with Relay.Install or "+
				"the command "+
				"\"edda migrate install --relay %s\")", queue.ErrNotInstalled, err, name)
		}
		return 0, err
	}
	return id, b.Routes.CheckRelay(ctx, name, true)
}
