package presence

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Process is a process as its row tells of it.
type Process struct {
	Session saga.ID
	Host    string
	PID     int
	Queues  []int // that it runs
	Lives   bool  // its row is renewed in time; one that was killed counts as alive until that is over
}

// Processes returns the living processes that run one of these queues, and those of these sessions, if they are known.
// It locks nothing.
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
