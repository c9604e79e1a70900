package bus

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
)

// prepare makes sure of the relay's queue and its mark, as far as it may.
func (r *Relay) prepare(ctx context.Context) error {
	b, e := r.bus, r.endpoint
	if _, err := e.findQueue(ctx); err != nil {
		return err
	}
	is, err := b.routes.IsRelay(ctx, r.name)
	if is || err != nil {
		return err
	}
	if !b.autoInstall {
		return fmt.Errorf("%w: call Relay.Install, or run the command \"edda migrate install --relay %s\", or set "+
			"bus.Options.AutoInstall", ErrNotInstalled, r.name)
	}
	if err := b.routes.MarkRelay(ctx, r.name); err != nil {
		if pg.ClassOf(err) == pg.Denied {
			return fmt.Errorf("%w: %w (let the owner of the schema install it once, with Relay.Install or the "+
				"command \"edda migrate install --relay %s\")", ErrNotInstalled, err, r.name)
		}
		return err
	}
	return nil
}

// InstallRelay is InstallQueue for a relay: Relay.Install for programs that do not have it, such as those that run with
// the right to create tables. It does nothing when all of it was done before. It fails when an endpoint of that name
// has run.
func (b *Bus) InstallRelay(ctx context.Context, name string, kinds ...string) error {
	if err := checkNames(name, kinds); err != nil {
		return err
	}
	e := &Endpoint{bus: b, name: name, handlers: &handlers{subscribed: kinds}, relay: true}
	return e.Install(ctx)
}
