package operate

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ErrRunning means that a process of the endpoint is running, or that its lease has not expired after a crash.
var ErrRunning = partition.ErrRunning

// SetPartitions sets the number of partitions of an installed endpoint to n: 1 to 256, or 0 for an endpoint without
// partitions. It returns the number before, and how many messages it has moved. The endpoint's program must have the
// same number when it starts. The pool's role needs the rights of the schema's owner, because SetPartitions creates
// queues.
//
// It works while no process runs the endpoint. It moves all messages that wait in the partitions back to the endpoint's
// own queue, in small transactions. Then it replaces the stored number in one transaction, with an audit entry.
// Processes that start with the new number move the messages to their new partitions by key. Queues of partitions that
// are no longer used stay; the endpoint moves messages that still arrive in them.
//
// SetPartitions returns ErrNotInstalled, or ErrRunning if a process holds a lease of the endpoint; then it has changed
// nothing, or moved only a part of the messages. After any error, and after a crash, the old number stays until all
// messages are moved: repeat SetPartitions.
func (e Endpoints) SetPartitions(ctx context.Context, endpoint string, n int) (before, moved int, err error) {
	if n < 0 || n > partition.Most {
		return 0, 0, fmt.Errorf("set the partitions of endpoint %.80q to %d: want 1 to %d, or 0 to remove them",
			endpoint, n, partition.Most)
	}
	if err := saga.CheckName(queue.PartitionName(endpoint, max(0, n-1))); err != nil {
		return 0, 0, fmt.Errorf("set the partitions of endpoint %.80q: %w", endpoint, err)
	}
	if before, moved, err = e.setPartitions(ctx, endpoint, n); err != nil {
		return before, moved, fmt.Errorf("set the partitions of endpoint %s: %w", endpoint, pgerr.Explain(err))
	}
	return before, moved, nil
}

func (e Endpoints) setPartitions(ctx context.Context, endpoint string, n int) (before, moved int, err error) {
	if _, err := e.o.routes.Find(ctx, endpoint, false); err != nil {
		return 0, 0, err
	}
	stored, err := e.o.routes.PartitionNumber(ctx, endpoint)
	if err != nil {
		return 0, 0, err
	}
	if stored != "" {
		if before, err = strconv.Atoi(stored); err != nil {
			return 0, 0, fmt.Errorf("the stored number of partitions is %.20q", stored)
		}
	}
	group := partition.NewGroup(partition.GroupOptions{
		Endpoint: endpoint, Partitions: n, Pool: e.o.pool, Schema: e.o.schema, Routes: e.o.routes, Leases: e.o.leases,
		Log: slog.New(slog.DiscardHandler),
	})
	moved, err = group.Renumber(ctx, func(tx pgx.Tx) error {
		return e.o.audit.Add(ctx, tx, audit.Change{Verb: "endpoint.partitions", Target: endpoint,
			Before: partitions(before), After: partitions(n)})
	})
	return before, moved, err
}

func partitions(n int) map[string]int { return map[string]int{"partitions": n} }
