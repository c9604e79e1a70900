package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
)

// A queue is an endpoint's or a relay's, and not both in turn: an endpoint that runs under a relay's name would handle
// what is meant for the other side. So a relay is marked in the table settings when it is installed.

var (
	errIsRelay = errors.New("this queue is a relay's, which carries its messages over the border of the database: " +
		"give the endpoint another name")
	errNoRelay = errors.New("an endpoint of this name has run here: give the relay another name")
)

// markRelay makes a queue that no endpoint has used a relay's.
func (b *Bus) markRelay(ctx context.Context, name string) error {
	if _, err := b.pool.Exec(ctx, b.sql.Get("relay_mark"), name); err != nil {
		return fmt.Errorf("mark its queue as a relay's: %w", pg.Explain(err))
	}
	return nil
}

// isRelay tells whether the queue of that name is a relay's.
func (b *Bus) isRelay(ctx context.Context, name string) (is bool, err error) {
	if err = b.pool.QueryRow(ctx, b.sql.Get("relay_marked"), name).Scan(&is); err != nil {
		return false, fmt.Errorf("read whether it is a relay: %w", pg.Explain(err))
	}
	return is, nil
}

// checkRelay compares what consumes the queue with what is to consume it.
func (e *Endpoint) checkRelay(ctx context.Context) error {
	is, err := e.bus.isRelay(ctx, e.name)
	switch {
	case err != nil:
		return err
	case is && !e.relay:
		return errIsRelay
	case !is && e.relay:
		return errNoRelay
	}
	return nil
}

// settleRelay is checkRelay for the owner of the schema, who may mark the queue.
func (e *Endpoint) settleRelay(ctx context.Context) error {
	if e.relay {
		if err := e.bus.markRelay(ctx, e.name); err != nil {
			return err
		}
	}
	return e.checkRelay(ctx)
}

// prepare makes sure of the relay's queue and its mark, as far as it may.
func (r *Relay) prepare(ctx context.Context) error {
	b, e := r.bus, r.endpoint
	if _, err := e.findQueue(ctx); err != nil {
		return err
	}
	is, err := b.isRelay(ctx, r.name)
	if is || err != nil {
		return err
	}
	if !b.autoInstall {
		return fmt.Errorf("%w: call Relay.Install, or run the command \"edda migrate install --relay %s\", or set "+
			"bus.Options.AutoInstall", ErrNotInstalled, r.name)
	}
	if err := b.markRelay(ctx, r.name); err != nil {
		if pg.ClassOf(err) == pg.Denied {
			return fmt.Errorf("%w: %w (let the owner of the schema install it once, with Relay.Install or the "+
				"command \"edda migrate install --relay %s\")", ErrNotInstalled, err, r.name)
		}
		return err
	}
	return nil
}

// refuseForRelays is for knobs that relays do not have.
func (b *Bus) refuseForRelays(ctx context.Context, doing, name string) error {
	is, err := b.isRelay(ctx, name)
	if is {
		err = errors.New("it is a relay, which keeps its order by relaying one batch at a time")
	}
	if err != nil {
		return fmt.Errorf("%s endpoint %.80q: %w", doing, name, err)
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
