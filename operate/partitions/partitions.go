package partitions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/edda-go/edda/audit"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Most is the maximum number of partitions.
const Most = partition.Most

// Errors that a caller can handle.
var (
	// ErrRunning means that a process of the endpoint is running, or that its lease has not expired after a crash.
	ErrRunning = partition.ErrRunning
	// ErrNotInstalled means that the endpoint has no queue.
	ErrNotInstalled = queue.ErrNotInstalled
)

// Operator changes the numbers of partitions in one schema. It needs the rights of the schema's owner, because it
// creates queues. It is safe for concurrent use.
type Operator struct {
	pool   *pg.Pool
	schema pg.Schema
	routes *queue.Router
	leases *lease.Store
	audit  *audit.Store
}

// New makes an Operator over pool; a schema of "" is "edda". It does no I/O, and checks the schema's name.
func New(pool *pgxpool.Pool, schema string) (*Operator, error) {
	if pool == nil {
		return nil, errors.New("new operator of partitions: the pool is nil")
	}
	s, err := pg.ParseSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("new operator of partitions: %w", err)
	}
	o := &Operator{pool: pg.Committed(pool), schema: s, leases: lease.New(s), audit: audit.Of(s)}
	o.routes = queue.NewRouter(o.pool, s, nil)
	return o, nil
}

// Changed is the result of Set.
type Changed struct {
	Before, After int // partitions; 0 is an endpoint without partitions
	Moved         int // messages that were moved from partitions to the endpoint's own queue
}

// Set sets the number of partitions of an installed endpoint to n: 1 to Most, or 0 for an endpoint without
// partitions. The endpoint's program must have the same number when it starts. Queues of partitions that are no
// longer used stay; the endpoint moves messages that still arrive in them. Set returns ErrNotInstalled or ErrRunning.
func (o *Operator) Set(ctx context.Context, endpoint string, n int) (c Changed, err error) {
	if n < 0 || n > Most {
		return c, fmt.Errorf("set the partitions of endpoint %.80q to %d: want 1 to %d, or 0 for none", endpoint, n,
			Most)
	}
	if err := saga.CheckName(queue.PartitionName(endpoint, max(0, n-1))); err != nil {
		return c, fmt.Errorf("set the partitions of endpoint %.80q: %w", endpoint, err)
	}
	if c, err = o.set(ctx, endpoint, n); err != nil {
		return c, fmt.Errorf("set the partitions of endpoint %s: %w", endpoint, pgerr.Explain(err))
	}
	return c, nil
}

func (o *Operator) set(ctx context.Context, endpoint string, n int) (c Changed, err error) {
	if _, err := o.routes.Find(ctx, endpoint, false); err != nil {
		return c, err
	}
	stored, err := o.routes.PartitionNumber(ctx, endpoint)
	if err != nil {
		return c, err
	}
	if stored != "" {
		if c.Before, err = strconv.Atoi(stored); err != nil {
			return c, fmt.Errorf("the stored number of partitions is %.20q", stored)
		}
	}
	c.After = n
	group := partition.NewGroup(partition.GroupOptions{
		Endpoint: endpoint, Partitions: n, Pool: o.pool, Schema: o.schema, Routes: o.routes, Leases: o.leases,
		Log: slog.New(slog.DiscardHandler),
	})
	c.Moved, err = group.Renumber(ctx, func(tx pgx.Tx) error {
		return o.audit.Add(ctx, tx, audit.Change{Verb: "endpoint.partitions", Target: endpoint,
			Before: number(c.Before), After: number(n)})
	})
	return c, err
}

func number(n int) map[string]int { return map[string]int{"partitions": n} }
