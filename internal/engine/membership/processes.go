package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Process describes a process by its row.
type Process struct {
	Session saga.ID
	Host    string
	PID     int
	Queues  []int // that it runs
	Lives   bool  // its row is renewed in time; a process that was killed counts as alive until its row expires

	// set by All only, by the database's clock
	Started, Renewed time.Time
	Ended            time.Time // zero while it has not
	Died             bool      // it ended without an entry of its end
	Left             []int     // functions of the program that do not return, for each of Queues; may be shorter
}

// Processes returns the living processes that run one of these queues, and the processes of these sessions, if they
// have rows. It locks nothing.
func Processes(
	ctx context.Context, q pg.Queryer, schema pg.Schema, queues []int, sessions []saga.ID,
) ([]Process, error) {
	ids := make([][16]byte, len(sessions))
	for n, id := range sessions {
		ids[n] = id
	}
	rows, err := q.Query(ctx, pg.Load(statements, schema).Get("processes"), queues, ids)
	if err != nil {
		return nil, fmt.Errorf("read the processes: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Process, err error) {
		err = row.Scan((*[16]byte)(&p.Session), &p.Host, &p.PID, &p.Queues, &p.Lives)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the processes: %w", err)
	}
	return found, nil
}

// All returns the living processes, and processes that have ended within an hour, 1,000 at most. It locks nothing.
func All(ctx context.Context, q pg.Queryer, schema pg.Schema) ([]Process, error) {
	rows, err := q.Query(ctx, pg.Load(statements, schema).Get("sessions"))
	if err != nil {
		return nil, fmt.Errorf("read the processes: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Process, err error) {
		var ended *time.Time
		err = row.Scan((*[16]byte)(&p.Session), &p.Host, &p.PID, &p.Queues, &p.Lives, &p.Started, &p.Renewed, &ended,
			&p.Died, &p.Left)
		if p.Started, p.Renewed = p.Started.UTC(), p.Renewed.UTC(); ended != nil {
			p.Ended = ended.UTC()
		}
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the processes: %w", err)
	}
	return found, nil
}
