package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/jackc/pgx/v5"
)

// Unhandled is a kind whose messages wait in a queue because no program that has taken them handles the kind.
type Unhandled struct {
	Endpoint string
	Kind     string    // as its sender wrote it: escape it before you show it
	Messages int       // number of waiting messages among the examined ones
	Since    time.Time // when the first of them was first taken
	More     bool      // there were more messages than are examined
}

const (
	mostUnhandled = 1000 // messages of a queue that are examined
	queuesAtOnce  = 200  // queues in a transaction, which locks the table and the index of each

	// alongIndex makes the statement follow the index to its end, whatever the planner estimates for a table that has
	// grown since it was analysed.
	alongIndex = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
		set_config('jit', 'off', true)`
)

// Unhandled returns the kinds whose messages wait in the queues of these endpoints because no program handles them,
// at most ten for each queue. It examines the first thousand messages of each queue that are due within the next
// minute, because no such message waits longer for its next attempt. It misses a message that is due now, that a
// worker has taken, or that is behind a thousand others.
func (e Endpoints) Unhandled(ctx context.Context, endpoints ...string) (all []Unhandled, err error) {
	known, err := e.o.routes.Get(ctx, e.o.pool)
	for len(endpoints) > 0 && err == nil {
		pipeline := &pgx.Batch{}
		pipeline.Queue(alongIndex)
		n := min(len(endpoints), queuesAtOnce)
		for _, name := range endpoints[:n] {
			if q := known.Endpoints[name]; q != nil {
				pipeline.Queue(q.SQL("unhandled"), mostUnhandled, message.ErrUnknownKind.Error()).Query(
					func(rows pgx.Rows) error {
						found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Unhandled, error) {
							return scanUnhandled(row, name)
						})
						all = append(all, found...)
						return err
					})
			}
		}
		endpoints = endpoints[n:]
		err = e.o.pool.SendBatch(ctx, pipeline).Close()
	}
	if err != nil {
		return nil, fmt.Errorf("look for kinds without a handler: %w", pgerr.Explain(err))
	}
	return all, nil
}

func scanUnhandled(row pgx.CollectableRow, endpoint string) (Unhandled, error) {
	u := Unhandled{Endpoint: endpoint}
	err := row.Scan(&u.Kind, &u.Messages, &u.Since, &u.More)
	u.Since = u.Since.UTC()
	return u, err
}
