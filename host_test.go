package edda_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type knock struct{ Door int }

func (knock) Kind() string { return "knock" }

// ignore is a handler without an effect.
func ignore(*bus.Context, pgx.Tx, knock) error { return nil }

// A Host finds the abilities of a Runner by its methods, and skips missing ones. Here the compiler checks the methods
// of the runners in this module.
var (
	_ = []interface {
		Check(ctx context.Context) error
		Connections() (pool *pgxpool.Pool, more int)
		Name() string
	}{(*bus.Endpoint)(nil), (*bus.Partitioned)(nil), (*outbox.Relay)(nil), (*scheduler.Scheduler)(nil),
		(*scheduler.Singleton)(nil)}
	_ = []interface {
		Install(ctx context.Context) error
	}{(*bus.Endpoint)(nil), (*bus.Partitioned)(nil), (*outbox.Relay)(nil)}
)

// newBus returns a bus in its own schema, migrated or not.
func newBus(t *testing.T, pool *pgxpool.Pool, migrated bool, o bus.Options) *bus.Bus {
	t.Helper()
	o.Schema = pgdev.Schema(t)
	if migrated {
		pgtest.Migrate(t, pool, o.Schema)
	}
	b, err := bus.New(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newEndpoint(t *testing.T, b *bus.Bus, name string, workers int, parts ...bus.Part) *bus.Endpoint {
	t.Helper()
	e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{Concurrency: workers}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A host runs a partitioned endpoint like others: it installs and checks it, and counts its connections.
func TestHostRunsPartitions(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, true, bus.Options{})
	opened := make(chan int, 1)
	handle := func(_ *bus.Context, _ pgx.Tx, m knock) error { opened <- m.Door; return nil }
	doors, err := bus.NewPartitioned(b, "doors", bus.PartitionOptions{Partitions: 3},
		bus.HandleTx(handle, bus.KeyedBy(func(m knock) string { return fmt.Sprint(m.Door) })))
	if err != nil {
		t.Fatal(err)
	}
	host, err := edda.NewHost(doors)
	if err != nil {
		t.Fatal(err)
	}
	of, more := doors.Connections()
	if err := host.Check(t.Context()); !errors.Is(err, bus.ErrNotInstalled) || of != pool || more != 5 {
		t.Errorf("Check before Install says %v; %d connections beside the pool %p, want %p", err, more, of, pool)
	}
	if err := host.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	if _, err := b.Send(t.Context(), knock{Door: 7}); err != nil {
		t.Fatal(err)
	}
	if door := <-opened; door != 7 {
		t.Errorf("door %d was opened", door)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("Run says %v", err)
	}
}

func TestHostRunsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, true, bus.Options{})
	opened := make(chan int, 2)
	doors := newEndpoint(t, b, "doors", 2, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m knock) error {
		opened <- m.Door
		return nil
	}))
	host, err := edda.NewHost(doors, newEndpoint(t, b, "windows", 1, bus.HandleTx(ignore)),
		edda.RunnerFunc(func(context.Context) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Check(t.Context()); !errors.Is(err, bus.ErrNotInstalled) ||
		!strings.Contains(err.Error(), "doors") || !strings.Contains(err.Error(), "windows") {
		t.Errorf("Check before Install says %v, want ErrNotInstalled of both endpoints", err)
	}
	if err := host.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	if _, err := b.Send(t.Context(), knock{Door: 7}, saga.To("doors")); err != nil {
		t.Fatal(err)
	}
	if got := <-opened; got != 7 {
		t.Errorf("door %d was opened, want 7", got)
	}
	stop()
	if err := <-ran; err != nil {
		t.Errorf("Run ended with %v, want nil", err)
	}
}

// If one runner fails, the others end in order, and the error of Run names the failed one.
func TestHostEndsWhenARunnerFails(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, true, bus.Options{AutoInstall: true})
	broken := errors.New("the boiler is out")
	host, err := edda.NewHost(newEndpoint(t, b, "doors", 1, bus.HandleTx(ignore)),
		edda.RunnerFunc(func(context.Context) error { return broken }))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run ended with %v, want %v", err, broken)
	}
}

func TestHostChecksBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, false, bus.Options{})
	ran := false
	host, err := edda.NewHost(newEndpoint(t, b, "doors", 1, bus.HandleTx(ignore)),
		edda.RunnerFunc(func(context.Context) error {
			ran = true
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Run(t.Context()); !errors.Is(err, migrations.ErrNotMigrated) {
		t.Errorf("Run ended with %v, want %v", err, migrations.ErrNotMigrated)
	}
	if ran {
		t.Error("a runner ran although the check of another had failed")
	}
}

func TestHostCountsConnections(t *testing.T) {
	t.Parallel()
	config := pgdev.Pool(t).Config().Copy()
	config.MaxConns = 5000 // it opens no connection
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b := newBus(t, pool, true, bus.Options{AutoInstall: true})
	runners := []edda.Runner{}
	for n := range 7 {
		runners = append(runners, newEndpoint(t, b, fmt.Sprint("hall-", n), 2, bus.HandleTx(ignore)))
	}
	host, err := edda.NewHost(append(runners, newEndpoint(t, b, "doors", 4000, bus.HandleTx(ignore)))...)
	if err != nil {
		t.Fatal(err)
	}
	// However many terms there are, one line names the largest.
	want := `may open 9015 connections (5000 of the pool, 4000 of "doors", 2 of "hall-0", 2 of "hall-1", ` +
		`2 of "hall-2", 2 of "hall-3", 6 of others (3 in number), and 1 that listens)`
	if err := host.Check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check says %v, want %q in it", err, want)
	}
	polling := newBus(t, pool, true, bus.Options{AutoInstall: true, Wakeup: bus.PollOnly})
	host, err = edda.NewHost(newEndpoint(t, polling, "doors", 4000, bus.HandleTx(ignore)))
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Check(t.Context()); err != nil {
		t.Errorf("Check behind a pooler says %v, whose connections are not ours to count", err)
	}
}

func TestNewHostNamesFaults(t *testing.T) {
	t.Parallel()
	b := newBus(t, pgdev.Pool(t), false, bus.Options{})
	twin := newEndpoint(t, b, "doors", 1, bus.HandleTx(ignore))
	_, err := edda.NewHost(twin, twin, nil)
	for _, want := range []string{`"doors" is given twice`, "runner 3 is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewHost says %v, want %q in it", err, want)
		}
	}
}
