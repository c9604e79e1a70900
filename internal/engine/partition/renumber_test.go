package partition_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/engine/partition"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// crew is the endpoint crew with four partitions, in a schema of its own.
type crew struct {
	*testing.T
	pool   *pg.Pool
	schema pg.Schema
	routes *queue.Router
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	t.Parallel()
	_, schema := pgtest.Database(t)
	c := &crew{T: t, pool: pg.Committed(pgtest.Pool(t)), schema: schema}
	c.routes = queue.NewRouter(c.pool, schema, nil)
	_, err := c.routes.Create(t.Context(), "crew")
	pgtest.Must(err)
	pgtest.Must(c.group(4).Install(t.Context()))
	return c
}

func (c *crew) group(partitions int) *partition.Group {
	return partition.NewGroup(partition.GroupOptions{Endpoint: "crew", Partitions: partitions, Pool: c.pool,
		Schema: c.schema, Routes: c.routes, Leases: lease.New(c.schema), Log: slog.New(slog.DiscardHandler)})
}

// run runs a program with four partitions, and counts the queues that it consumes. The program has checked the number
// before.
func (c *crew) run(ctx context.Context) (consumed chan string, ended chan error) {
	c.Helper()
	consumed, ended = make(chan string, 10), make(chan error, 1)
	consume := func(name string) partition.Queue {
		return partition.Queue{Endpoint: name, Run: func(ctx context.Context, _ lease.Term) error {
			consumed <- name
			<-ctx.Done()
			return nil
		}}
	}
	o := partition.ConsumerOptions{Group: c.group(4), Distributor: consume("crew"), Lease: 2 * time.Second,
		Stop: time.Second, Hub: wake.NewHub(func(int) {}), Log: slog.New(slog.DiscardHandler),
		Announce:  func(context.Context, string) {},
		CannotFix: func(err error) bool { return errors.Is(err, queue.ErrNotInstalled) }}
	for n := range 4 {
		o.Partitions = append(o.Partitions, consume(queue.PartitionName("crew", n)))
	}
	program, err := partition.NewConsumer(o)
	pgtest.Must(err)
	go func() { ended <- program.Run(ctx) }()
	return consumed, ended
}

// awaitBlocked returns when n sessions wait for a lock of tx.
func (c *crew) awaitBlocked(tx pgx.Tx, n int) {
	c.Helper()
	const blocked = `SELECT count(*) FROM pg_stat_activity a WHERE $1::int = ANY (pg_blocking_pids(a.pid))`
	holder := pgtest.Backend(c, tx)
	for waiting, end := 0, time.Now().Add(pgdev.Patience(5*time.Second)); waiting < n; {
		pgtest.Must(c.pool.QueryRow(c.Context(), blocked, holder).Scan(&waiting))
		if time.Now().After(end) {
			c.Fatalf("%d sessions wait for the transaction, want %d", waiting, n)
		}
	}
}

// A program that starts between the last check for processes and the commit of a new number finds the new number, and
// ends: as the distributor it would spread messages by the old number, and with only a rank the others would leave
// partitions to it.
func TestAProgramThatStartsDuringARenumberingFindsTheNewNumber(t *testing.T) {
	for name, blocked := range map[string]int{"it may distribute": 2, "it has no more than a rank": 1} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t)
			var consumed chan string
			var ended chan error
			_, err := c.group(8).Renumber(t.Context(), func(tx pgx.Tx) error {
				if blocked == 1 {
					c.takeLeases()
				}
				consumed, ended = c.run(t.Context())
				c.awaitBlocked(tx, blocked)
				return nil
			})
			pgtest.Must(err)
			if err := <-ended; !errors.Is(err, partition.ErrOtherNumber) {
				t.Errorf("the program ended with %v, want %v", err, partition.ErrOtherNumber)
			}
			if len(consumed) > 0 {
				t.Errorf("it consumed %s", <-consumed)
			}
		})
	}
}

// takeLeases takes the leases of all queues for a second process.
func (c *crew) takeLeases() {
	c.Helper()
	for _, q := range []string{"crew", "crew.p0", "crew.p1", "crew.p2", "crew.p3"} {
		_, ok, err := lease.New(c.schema).Acquire(c.Context(), c.pool.Writing(), lease.Bid{Name: c.group(4).Lease(q),
			Holder: "another", Lease: time.Hour})
		if pgtest.Must(err); !ok {
			c.Fatalf("the lease of %s is held", q)
		}
	}
}

// Renumber detects a program that has started between the first check for processes and the transaction of the new
// number.
func TestARenumberingLooksAgainInItsTransaction(t *testing.T) {
	c := newCrew(t)
	blocker, err := c.pool.Begin(t.Context())
	pgtest.Must(err)
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = blocker.Exec(t.Context(), `SELECT FROM "`+c.schema.Name()+`".settings FOR SHARE`)
	pgtest.Must(err)
	renumbered := make(chan error, 1)
	go func() {
		_, err := c.group(8).Renumber(t.Context(), func(pgx.Tx) error { return nil })
		renumbered <- err
	}()
	c.awaitBlocked(blocker, 1)
	ctx, stop := context.WithCancel(t.Context())
	consumed, ended := c.run(ctx)
	for range 5 {
		<-consumed
	}
	pgtest.Must(blocker.Rollback(t.Context()))
	if err := <-renumbered; !errors.Is(err, partition.ErrRunning) {
		t.Errorf("the renumbering beside a program: %v, want %v", err, partition.ErrRunning)
	}
	stop()
	pgtest.Must(<-ended)
}
