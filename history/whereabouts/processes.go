package whereabouts

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/saga"
)

// Process is a process that runs endpoints or relays, by the database's clock.
type Process struct {
	Session   saga.ID
	Host      string
	PID       int
	Endpoints []string // the endpoints and relays that it runs, sorted
	Lives     bool     // it renews its row in time; a killed process counts as alive for some seconds
	Started   time.Time
	Renewed   time.Time // the last sign of life
	Ended     time.Time // zero while it lives
	Died      bool      // it did not deregister: it was killed, or lost the database
	// Left is, for each of Endpoints, the number of functions of the program that have not returned: a new worker has
	// replaced the worker that called the function.
	Left []int
}

// Processes returns the live processes, the newest first, followed by processes that have ended within an hour, at
// most 1,000. It takes no locks and needs SELECT.
func (r *Reader) Processes(ctx context.Context) ([]Process, error) {
	known, err := r.routes.Reload(ctx, r.pool)
	if err != nil {
		return nil, err
	}
	found, err := membership.All(ctx, r.pool, r.schema)
	if err != nil {
		return nil, pgerr.Explain(err)
	}
	all := make([]Process, 0, len(found))
	for _, f := range found {
		p := Process{
			Session: f.Session, Host: f.Host, PID: f.PID, Lives: f.Lives, Started: f.Started, Renewed: f.Renewed,
			Ended: f.Ended, Died: f.Died,
		}
		left := map[string]int{}
		for n, number := range f.Queues {
			if q := known.ByID[number]; q != nil {
				left[q.Endpoint] = 0
				if n < len(f.Left) {
					left[q.Endpoint] = f.Left[n]
				}
			}
		}
		for _, endpoint := range slices.Sorted(maps.Keys(left)) {
			p.Endpoints, p.Left = append(p.Endpoints, endpoint), append(p.Left, left[endpoint])
		}
		all = append(all, p)
	}
	return all, nil
}
