package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
)

// A queue is consumed by an endpoint or by a relay, never first by one and then by the other: an endpoint with a
// relay's name would handle messages for other systems. So a setting marks the queue of a relay when it is installed.

var (
	errIsRelay = errors.New("this queue is a relay's, which carries its messages over the border of the database: " +
		"choose a different name for the endpoint")
	errNoRelay = errors.New("an endpoint of this name has run here: choose a different name for the relay")
)

// Install creates the queue of an endpoint, or of a relay, and subscribes it to kinds. It needs the right to create
// tables, and does nothing if all of that was done before.
func (r *Router) Install(ctx context.Context, endpoint string, relay bool, kinds []string) error {
	faults := []error{saga.CheckName(endpoint)}
	for _, kind := range kinds {
		if err := saga.CheckName(kind); err != nil {
			faults = append(faults, fmt.Errorf("kind %.80q: %w", kind, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	id, err := r.Create(ctx, endpoint)
	if err != nil {
		return err
	}
	if relay {
		if err := r.markRelay(ctx, endpoint); err != nil {
			return err
		}
	}
	if err := r.CheckRelay(ctx, endpoint, relay); err != nil {
		return err
	}
	return r.Subscribe(ctx, id, kinds)
}

// FindRelay is Find for a relay. It also requires the relay's mark, and marks the queue if create is set.
func (r *Router) FindRelay(ctx context.Context, name string, create bool) (id int, err error) {
	id, err = r.Find(ctx, name, create)
	if err != nil {
		return 0, err
	}
	is, err := r.isRelay(ctx, name)
	if is || err != nil {
		return id, err
	}
	if !create {
		return 0, fmt.Errorf("%w: call Relay.Install, or run the command \"edda migrate install --relay %s\", "+
			"or set bus.Options.AutoInstall", ErrNotInstalled, name)
	}
	if err := r.markRelay(ctx, name); err != nil {
		if pgerr.ClassOf(err) == pgerr.Denied {
			return 0, fmt.Errorf("%w: %w (let the owner of the schema install it once, with Relay.Install or "+
				"the command \"edda migrate install --relay %s\")", ErrNotInstalled, err, name)
		}
		return 0, err
	}
	return id, r.CheckRelay(ctx, name, true)
}

// markRelay marks a queue that no endpoint has used as a relay's.
func (r *Router) markRelay(ctx context.Context, name string) error {
	if _, err := r.pool.Exec(ctx, r.sql.Get("relay_mark"), name); err != nil {
		return fmt.Errorf("mark its queue as a relay's: %w", pgerr.Explain(err))
	}
	return nil
}

// isRelay reports whether the queue of that name is a relay's.
func (r *Router) isRelay(ctx context.Context, name string) (is bool, err error) {
	if err = r.pool.QueryRow(ctx, r.sql.Get("relay_marked"), name).Scan(&is); err != nil {
		return false, fmt.Errorf("read whether it is a relay: %w", pgerr.Explain(err))
	}
	return is, nil
}

// CheckRelay returns an error if the queue of that name belongs to a relay and relay is false, or the reverse.
func (r *Router) CheckRelay(ctx context.Context, name string, relay bool) error {
	is, err := r.isRelay(ctx, name)
	switch {
	case err != nil:
		return err
	case is && !relay:
		return errIsRelay
	case !is && relay:
		return errNoRelay
	}
	return nil
}
