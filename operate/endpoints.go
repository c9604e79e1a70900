package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/jackc/pgx/v5"
)

// EndpointSettings are the settings of an endpoint that an operator may change while its programs run. The database
// stores them, and they apply to all processes of the endpoint, present and later ones, until they are changed again.
type EndpointSettings struct {
	Endpoint    string
	Paused      bool
	PausedAt    time.Time // by the database's clock; zero, like Reason, while it is not paused
	Reason      string
	PausedBy    string          // the actor, else the database role; "policy" is the endpoint's own failure policy
	Concurrency int             // workers of each process; 0 while the program's number applies
	Relay       bool            // a relay sends its messages to other systems, and has no workers
	History     history.Options // fields are zero while the program's settings apply
}

// Endpoints pauses endpoints and sets their number of workers while their programs run. Every method that changes
// something returns ErrNotInstalled if no endpoint has the name.
type Endpoints struct{ o *Operator }

// Endpoints returns the methods for endpoints.
func (o *Operator) Endpoints() Endpoints { return Endpoints{o} }

// List returns the settings of every installed endpoint, in the order of their names. The pool's role needs SELECT.
func (e Endpoints) List(ctx context.Context) ([]EndpointSettings, error) {
	found, err := e.o.settings.List(ctx, e.o.pool)
	if err != nil {
		return nil, fmt.Errorf("read the settings of endpoints: %w", pgerr.Explain(err))
	}
	all := make([]EndpointSettings, 0, len(found))
	for _, s := range found {
		all = append(all, EndpointSettings(s))
	}
	return all, nil
}

// Pause stops an endpoint in all processes, running ones and later ones: they take no messages, but finish the
// batches that they have taken. New messages still arrive. The pause lasts until Resume. The reason is for people.
// Processes that listen follow at once, others within their Poll. Pausing a paused endpoint changes only the reason.
//
// A partitioned endpoint is paused as a whole: its distributor and all of its partitions, in one transaction. The
// name of a partition, such as orders.p3, pauses only that partition.
func (e Endpoints) Pause(ctx context.Context, name, reason string) error {
	reason = deadletter.Storable(reason)
	names, err := e.whole(ctx, name)
	if err != nil {
		return fmt.Errorf("pause endpoint %.80q: %w", name, pgerr.Explain(err))
	}
	c := audit.Change{Verb: "endpoint.pause", Reason: reason}
	return e.changeAll(ctx, "pause", names, c, func(tx pgx.Tx, name string) (int, error) {
		return e.o.settings.Pause(ctx, tx, name, reason, audit.ActorOf(ctx).Name)
	})
}

// Resume ends the pause of an endpoint and of its partitions. It does nothing if the endpoint is not paused.
func (e Endpoints) Resume(ctx context.Context, name string) error {
	names, err := e.whole(ctx, name)
	if err != nil {
		return fmt.Errorf("resume endpoint %.80q: %w", name, pgerr.Explain(err))
	}
	return e.changeAll(ctx, "resume", names, audit.Change{Verb: "endpoint.resume"},
		func(tx pgx.Tx, name string) (int, error) { return e.o.settings.Resume(ctx, tx, name) })
}

// whole returns the names of an endpoint and its partitions, sorted, because Pause and Resume lock in this order.
func (e Endpoints) whole(ctx context.Context, name string) (names []string, err error) {
	names = []string{name}
	number, err := e.o.routes.PartitionNumber(ctx, name)
	if err != nil || number == "" {
		return names, err
	}
	known, err := e.o.routes.Reload(ctx, e.o.pool)
	if err != nil {
		return nil, err
	}
	for _, q := range known.Partitions(name, 0) {
		names = append(names, q.Endpoint)
	}
	slices.Sort(names)
	return names, nil
}

// SetConcurrency sets the number of workers in each process of an endpoint to n, in place of
// bus.EndpointOptions.Concurrency: 1 to 10,000. Workers start, or end after their batch, without a restart. No
// process has more workers than the MaxConns of its bus's pool; if n is larger, the process logs that. A worker uses
// a connection while it works; SetConcurrency does not check that the server allows that many connections.
func (e Endpoints) SetConcurrency(ctx context.Context, name string, n int) error {
	if n < 1 || n > settings.MostWorkers {
		return fmt.Errorf("set the concurrency of endpoint %.80q to %d: want 1 to %d; Pause stops an "+
			"endpoint, and ResetConcurrency goes back to its program's number", name, n, settings.MostWorkers)
	}
	return e.setConcurrency(ctx, "set the concurrency of", name, &n)
}

// ResetConcurrency makes the processes of an endpoint use the numbers of their programs again.
func (e Endpoints) ResetConcurrency(ctx context.Context, name string) error {
	return e.setConcurrency(ctx, "reset the concurrency of", name, nil)
}

// SetHistory sets what the history keeps of an endpoint's messages, in place of bus.EndpointOptions.History and
// bus.Options.History. A zero field of o restores the program's setting. Processes that listen follow at once, others
// within their Poll.
func (e Endpoints) SetHistory(ctx context.Context, name string, o history.Options) error {
	if err := o.Check(); err != nil {
		return fmt.Errorf("set the history of endpoint %.80q: %w", name, err)
	}
	return e.change(ctx, "set the history of", audit.Change{Verb: "history.set", Target: name},
		func(tx pgx.Tx) (int, error) { return e.o.settings.SetHistory(ctx, tx, name, o) })
}

func (e Endpoints) setConcurrency(ctx context.Context, doing, name string, n *int) error {
	if q, err := e.o.find(ctx, name); err != nil {
		return fmt.Errorf("%s endpoint %.80q: %w", doing, name, err)
	} else if q.Relay {
		return fmt.Errorf("%s endpoint %.80q: %w", doing, name, errRelay)
	}
	return e.change(ctx, doing, audit.Change{Verb: "endpoint.concurrency", Target: name},
		func(tx pgx.Tx) (int, error) { return e.o.settings.SetConcurrency(ctx, tx, name, n) })
}

var errRelay = errors.New("it is a relay, which relays one batch at a time and has no workers")

// change changes the settings of an endpoint, adds an audit entry, and notifies the endpoint's processes. set returns
// the number of the endpoint's queue.
func (e Endpoints) change(
	ctx context.Context, doing string, c audit.Change, set func(tx pgx.Tx) (queue int, err error),
) error {
	return e.changeAll(ctx, doing, []string{c.Target}, c, func(tx pgx.Tx, _ string) (int, error) { return set(tx) })
}

// changeAll is change for several endpoints in one transaction, with an audit entry for each.
func (e Endpoints) changeAll(ctx context.Context, doing string, names []string, c audit.Change,
	set func(tx pgx.Tx, name string) (queue int, err error)) error {
	var notes []string
	err := pgx.BeginTxFunc(ctx, e.o.pool, pg.ReadCommitted, func(tx pgx.Tx) error {
		for _, name := range names {
			c.Target = name
			before, err := e.o.settings.State(ctx, tx, name)
			if err != nil {
				return err
			}
			queue, err := set(tx, name)
			if err != nil {
				return err
			}
			after, err := e.o.settings.State(ctx, tx, name)
			if err != nil {
				return err
			}
			c.Before, c.After = before, after
			if err := e.o.audit.Add(ctx, tx, c); err != nil {
				return err
			}
			notes = append(notes, settings.Prefix+strconv.Itoa(queue))
		}
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: its name is misspelt, or it has never run here", ErrNotInstalled)
	}
	if err != nil {
		return fmt.Errorf("%s endpoint %.80q: %w", doing, c.Target, pgerr.Explain(err))
	}
	e.o.notify(ctx, notes...)
	return nil
}
