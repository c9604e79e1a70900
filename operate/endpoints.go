package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5"
)

// EndpointSettings are the settings of an endpoint that an operator may change while its programs run. They are in the
// database, and hold for every process of the endpoint, also for those that start later, until they are changed again.
type EndpointSettings struct {
	Endpoint    string
	Paused      bool
	PausedAt    time.Time // by the database's clock; zero while it is not paused, as is Reason
	Reason      string
	PausedBy    string          // the actor, else the database role; "policy" is that of the endpoint
	Concurrency int             // workers of each process; 0 while the number of the program holds
	Relay       bool            // a relay carries its messages over the border, and has no workers
	History     history.Options // zero fields while what the program says holds
}

// Endpoints pauses endpoints and sets their number of workers while their programs run. Every method
// that changes something returns ErrNotInstalled if no endpoint has the name.
type Endpoints struct{ o *Operator }

// Endpoints returns the methods for endpoints.
func (o *Operator) Endpoints() Endpoints { return Endpoints{o} }

// List returns the settings of every endpoint that is installed, in the order of their names. The pool's role needs
// SELECT.
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

// Pause stops an endpoint in all processes, whether they run now or start later: they take no message, and let the
// batches in hand finish. Messages go on arriving. The pause lasts until Resume. The reason is for people. Processes
// that listen follow at once, others within their Poll. Pausing a paused endpoint changes only the reason.
//
// A partitioned endpoint is paused as a whole: its distributor and all of its partitions, in one transaction. The name
// of a partition, such as orders.p3, pauses that one alone.
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

// Resume ends the pause of an endpoint, of a partitioned one with those of its partitions. It does nothing if the
// endpoint is not paused.
func (e Endpoints) Resume(ctx context.Context, name string) error {
	names, err := e.whole(ctx, name)
	if err != nil {
		return fmt.Errorf("resume endpoint %.80q: %w", name, pgerr.Explain(err))
	}
	return e.changeAll(ctx, "resume", names, audit.Change{Verb: "endpoint.resume"},
		func(tx pgx.Tx, name string) (int, error) { return e.o.settings.Resume(ctx, tx, name) })
}

// whole returns the names of an endpoint and of its partitions, always in the same order: those who pause and resume
// lock the rows in it.
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

// SetConcurrency makes n the number of workers that each process of an endpoint has, in place of
// bus.EndpointOptions.Concurrency: 1 to 10,000. Workers start, or end after their batch, without a restart. No process
// has more workers than the MaxConns of its bus's pool; one that is asked for more logs that. A worker has a connection
// of its own while it works; SetConcurrency does not check that the server allows so many.
func (e Endpoints) SetConcurrency(ctx context.Context, name string, n int) error {
	if n < 1 || n > settings.MostWorkers {
		return fmt.Errorf("set the concurrency of endpoint %.80q to %d: want 1 to %d; Pause stops an "+
			"endpoint, and ResetConcurrency goes back to its program's number", name, n, settings.MostWorkers)
	}
	return e.setConcurrency(ctx, "set the concurrency of", name, &n)
}

// ResetConcurrency gives the processes of an endpoint back the numbers of their programs.
func (e Endpoints) ResetConcurrency(ctx context.Context, name string) error {
	return e.setConcurrency(ctx, "reset the concurrency of", name, nil)
}

// SetHistory sets what is kept of an endpoint's messages, in place of bus.EndpointOptions.History and
// bus.Options.History. A field of o that is zero goes back to what the program says. Processes that listen follow at
// once, others within their Poll.
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

var errRelay = errors.New("it is a relay, which always relays one batch at a time: leave it alone")

// change changes what is set for an endpoint, with an entry of the audit, and notifies its processes. set returns the
// number of the endpoint's queue.
func (e Endpoints) change(
	ctx context.Context, doing string, c audit.Change, set func(tx pgx.Tx) (queue int, err error),
) error {
	return e.changeAll(ctx, doing, []string{c.Target}, c, func(tx pgx.Tx, _ string) (int, error) { return set(tx) })
}

// changeAll is change for several endpoints, each with an entry of its own, in one transaction.
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
