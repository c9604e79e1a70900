package eddadev

import (
	"context"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	looksEvery  = 5 * time.Second
	mostWaiting = 1000 // messages of a queue that are counted
)

// lookForWaiting logs each endpoint that has messages and that no process runs, once until that changes, until ctx
// ends. Production has health checks and alerts for this; in development an endpoint may be forgotten, or its program
// not started yet, without anything that would report it.
func lookForWaiting(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	op, err := operate.New(pool, operate.Options{Schema: schema, CountTo: mostWaiting})
	if err != nil {
		return err
	}
	logged := map[string]bool{}
	for run.Sleep(ctx, looksEvery) == nil {
		waits, err := unserved(ctx, op)
		if err != nil {
			continue // the runners report the error
		}
		for name, messages := range waits {
			if !logged[name] {
				slog.Warn("edda: messages wait for an endpoint that no process runs", "endpoint", name, "messages",
					messages, "remedy", "give the endpoint to eddadev.Run, or start the program that runs it")
			}
		}
		clear(logged)
		for name := range waits {
			logged[name] = true
		}
	}
	return nil
}

// unserved returns how many messages are due at endpoints that no process runs.
func unserved(ctx context.Context, op *operate.Operator) (map[string]int64, error) {
	queues, err := op.Queues().List(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := op.History().Processes(ctx)
	if err != nil {
		return nil, err
	}
	waits := map[string]int64{}
	for _, q := range queues {
		if q.Ready > 0 && !q.Relay {
			waits[q.Endpoint] = q.Ready
		}
	}
	for _, p := range processes {
		if p.Lives {
			for _, name := range p.Endpoints {
				delete(waits, name)
			}
		}
	}
	return waits, nil
}
