package exchange

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/procs"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed statements.sql
var statementsText string

// This binary is also the worker processes of the test.
func TestMain(m *testing.M) {
	procs.Become(assignmentVariable, "exchange", func() error { return work(context.Background()) })
	os.Exit(pgdev.Main(m))
}

// The counts are exact though workers were killed with their batches open.
func TestCountsAreExact(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	x := exchange{dsn: pgdev.Database(t), schema: "edda_watermill", total: 3000, kills: 4, out: &out, errs: os.Stderr}
	if err := x.run(t.Context()); err != nil || !strings.Contains(out.String(), "counts exact") {
		t.Errorf("exchange: %v\n%s", err, &out)
	}
}

// exchange is what is counted.
type exchange struct {
	dsn, schema string
	total       int // messages
	kills       int
	out, errs   io.Writer
}

// run lets a stock publisher, an Edda endpoint, Routers and stock subscribers exchange messages while they are killed,
// and counts.
func (x exchange) run(ctx context.Context) error {
	return x.onPlace(ctx, func(p *place) error { return x.runOn(ctx, p) })
}

func (x exchange) onPlace(ctx context.Context, f func(p *place) error) error {
	config, err := pgxpool.ParseConfig(x.dsn)
	if err != nil {
		return err
	}
	p, err := openPlace(ctx, config, x.schema)
	if err != nil {
		return err
	}
	defer p.pool.Close()
	return f(p)
}

func (x exchange) runOn(ctx context.Context, p *place) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	c := &hands{place: p, errs: x.errs, kills: map[string]int{},
		task: assignment{DSN: x.dsn, Schema: x.schema, Total: x.total}}
	begun := time.Now()
	err := x.withCrew(ctx, c)
	if err = errors.Join(err, c.finish()); err != nil {
		return err
	}
	took := time.Since(begun)
	_, _ = fmt.Fprintf(x.out, "exchange: %d messages in %.1f s (%.0f/s) through a stock publisher, a saga, two "+
		"Routers and two stock subscribers\n",
		x.total, took.Seconds(), float64(x.total)/took.Seconds())
	_, _ = fmt.Fprintf(x.out,
		"exchange: killed with an open transaction: %d publishers, %d endpoints, %d Routers, %d subscribers\n",
		c.kills["publisher"], c.kills["endpoint"], c.kills["router"], c.kills["subscriber"])
	return p.check(ctx, x)
}

// prepare makes the schema, the queues and the example's own tables.
func (p *place) prepare(ctx context.Context) error {
	if err := migrate.Up(ctx, p.pool, migrate.Options{Schema: p.schema}); err != nil {
		return err
	}
	if _, err := p.pool.Exec(ctx, p.sql.Get("create")); err != nil {
		return fmt.Errorf("create the example's tables: %w", err)
	}
	e, err := p.endpoint()
	if err == nil {
		err = e.Install(ctx)
	}
	if err != nil {
		return err
	}
	b, err := p.bus()
	if err != nil {
		return err
	}
	for _, topic := range []string{Counted{}.Kind(), receipts} {
		if err := b.InstallQueue(ctx, topic, topic); err != nil {
			return err
		}
	}
	return nil
}

// withCrew starts the processes, kills them at even distances, and returns when everything is received.
func (x exchange) withCrew(ctx context.Context, c *hands) error {
	for number, role := range []string{"endpoint", "endpoint", "router", "router", "subscriber", "subscriber",
		"publisher"} {
		if err := c.hire(role, number); err != nil {
			return err
		}
	}
	for n := range x.kills {
		if err := c.reach(ctx, x.total*(n+1)/(x.kills+2)); err != nil {
			return err
		}
		// The publisher is ahead of the others, so it is the first, until there is nothing to publish.
		second := n / 4 % 2
		order := []int{6, second, 2 + second, 4 + second}
		victim := c.members[order[n%4]]
		err := c.kill(ctx, victim)
		if errors.Is(err, errDone) {
			err = c.kill(ctx, c.members[n%6])
		}
		if err != nil {
			return err
		}
	}
	return c.reach(ctx, x.total)
}

const stuck = 2 * time.Minute // without a message received

// reach waits until so many numbers are received.
func (c *hands) reach(ctx context.Context, wanted int) error {
	last, since := -1, time.Now()
	for {
		received := 0
		if err := c.place.pool.QueryRow(ctx, c.place.sql.Get("progress")).Scan(&received); err != nil {
			return err
		}
		switch {
		case received >= wanted:
			return nil
		case received != last:
			last, since = received, time.Now()
		case time.Since(since) > stuck:
			return fmt.Errorf("stuck at %d of %d messages", received, wanted)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// check compares the counts with what they must be.
func (p *place) check(ctx context.Context, x exchange) error {
	var published, counted, received, distinct, lost, left int
	var sum int64
	err := p.pool.QueryRow(ctx, p.sql.Get("counts")).Scan(&published, &counted, &sum, &received, &distinct, &lost,
		&left)
	if err != nil {
		return err
	}
	total := x.total
	_, _ = fmt.Fprintf(x.out, "exchange: published %d, counted by the saga %d, received %d (%d different), given "+
		"up %d, still queued %d\n",
		published, counted, received, distinct, lost, left)
	want := int64(total) * int64(total-1) / 2
	if published != total || counted != total || sum != want || received != total || distinct != total || lost != 0 ||
		left != 0 {
		return fmt.Errorf("the counts are wrong: want %d everywhere, a sum of %d (it is %d) and nothing given up "+
			"or queued", total, want, sum)
	}
	_, _ = fmt.Fprintln(x.out, "exchange: counts exact")
	return nil
}
