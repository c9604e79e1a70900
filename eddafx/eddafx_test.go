package eddafx_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
)

func TestMain(m *testing.M) {
	if of, ok := programs[os.Getenv(programVariable)]; ok {
		of.run()
		return
	}
	pgtest.Main(m)
}

type placeOrder struct{ ID string }
type reserve struct{ Order string }

func (placeOrder) Kind() string { return "order.place" }
func (reserve) Kind() string    { return "stock.reserve" }

type order struct{ Placed bool }

func (o *order) place(ctx *saga.Context, m placeOrder) error {
	o.Placed = true
	ctx.Send(reserve{Order: m.ID})
	return nil
}

var orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m placeOrder) string { return m.ID }, (*order).place))

// stock is a handler with a dependency.
type stock struct{ reserved chan<- string }

func (s *stock) reserve(_ *bus.Context, _ pgx.Tx, m reserve) error {
	s.reserved <- m.Order
	return nil
}

// build returns an app over the test's database, without a log, with the options o.
func build(pool *pgxpool.Pool, o ...fx.Option) *fx.App {
	return fx.New(append([]fx.Option{fx.NopLogger, fx.Supply(pool)}, o...)...)
}

func migrated(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	schema := pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	return schema
}

func TestAppRunsItsEndpoints(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	var b *bus.Bus
	reserved := make(chan string, 1)
	app := build(pool,
		fx.Supply(&stock{reserved: reserved}, slog.New(slog.NewTextHandler(io.Discard, nil))),
		eddafx.Module(bus.Options{Schema: migrated(t, pool), AutoInstall: true}),
		eddafx.Endpoint("orders", bus.EndpointOptions{Concurrency: 1}, bus.Saga(orders)),
		eddafx.EndpointFrom(func(s *stock) (eddafx.Spec, error) {
			return eddafx.Spec{Name: "stock", Options: bus.EndpointOptions{Concurrency: 1},
				Parts: []bus.Part{bus.HandleTx(s.reserve)}}, nil
		}),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), placeOrder{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	if got := <-reserved; got != "7" {
		t.Errorf("order %q was reserved, want 7", got)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Errorf("Stop says %v", err)
	}
}

func TestAppRunsPartitions(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	var b *bus.Bus
	reserved := make(chan string, 1)
	app := build(pool,
		fx.Supply(slog.New(slog.NewTextHandler(io.Discard, nil))),
		eddafx.Module(bus.Options{Schema: migrated(t, pool), AutoInstall: true}),
		eddafx.Partitioned("orders", bus.PartitionOptions{Partitions: 2}, bus.Saga(orders)),
		eddafx.Endpoint("stock", bus.EndpointOptions{Concurrency: 1},
			bus.HandleTx((&stock{reserved: reserved}).reserve)),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), placeOrder{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	if got := <-reserved; got != "7" {
		t.Errorf("order %q was reserved, want 7", got)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Errorf("Stop says %v", err)
	}
}

func TestStartFailsWithTheChecks(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	app := build(pool,
		eddafx.Module(bus.Options{Schema: pgdev.Schema(t)}),
		eddafx.Endpoint("orders", bus.EndpointOptions{Concurrency: 1}, bus.Saga(orders)),
	)
	if err := app.Start(t.Context()); !errors.Is(err, migrations.ErrNotMigrated) {
		t.Errorf("Start says %v, want %v", err, migrations.ErrNotMigrated)
	}
}

func TestNewReportsTheFaultsOfAllEndpoints(t *testing.T) {
	t.Parallel()
	app := build(pgdev.Pool(t),
		eddafx.Module(bus.Options{}),
		eddafx.Endpoint("Orders", bus.EndpointOptions{}, bus.Saga(orders)),
		eddafx.Endpoint("stock", bus.EndpointOptions{Concurrency: -1}, bus.Saga(orders)),
	)
	for _, want := range []string{`"Orders"`, `"stock"`} {
		if err := app.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New says %v, want %s in it", err, want)
		}
	}
}

func TestFailingRunStopsTheAppWithCodeOne(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	schema := migrated(t, pool)
	var b *bus.Bus
	app := build(pool,
		eddafx.Module(bus.Options{Schema: schema, AutoInstall: true,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}),
		eddafx.Endpoint("orders", bus.EndpointOptions{Concurrency: 1, Poll: 20 * time.Millisecond}, bus.Saga(orders)),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// An error that a worker cannot correct ends it: here a missing right to delete handled messages.
	inSchema := "SET search_path = " + pgx.Identifier{schema}.Sanitize() + `;
		CREATE FUNCTION deny() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE insufficient_privilege; END';
		CREATE TRIGGER deny BEFORE DELETE ON queue_1 FOR EACH STATEMENT EXECUTE FUNCTION deny()`
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
		_, err := conn.Conn().PgConn().Exec(t.Context(), inSchema+"; RESET search_path").ReadAll()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), placeOrder{ID: "7"}); err != nil {
		t.Fatal(err)
	}
	if signal := <-app.Wait(); signal.ExitCode != 1 {
		t.Errorf("the app ended with code %d, want 1", signal.ExitCode)
	}
	if err := app.Stop(t.Context()); err == nil {
		t.Error("Stop says nothing of the endpoint that failed")
	}
}

// loop is a runner of the program's own.
type loop struct {
	run func(ctx context.Context) error
}

func (l loop) Run(ctx context.Context) error { return l.run(ctx) }

func TestAppMigratesAndRunsWhateverRuns(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	schema := pgdev.Schema(t)
	var (
		b         *bus.Bus
		store     *scheduler.Store
		publisher message.Publisher
	)
	relayed, looped := make(chan string, 10), make(chan struct{}, 1)
	o := bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler)}
	app := build(pool, fx.Supply(&stock{reserved: relayed}),
		eddafx.Module(o),
		eddafx.Migrate(),
		eddafx.Publisher(watermill.PublisherOptions{}),
		eddafx.Endpoint("orders", bus.EndpointOptions{Concurrency: 1}, bus.Saga(orders)),
		eddafx.Scheduler(scheduler.Options{Owner: "shop"},
			scheduler.Manifest{Name: "first", When: scheduler.Every(time.Hour), Message: placeOrder{ID: "manifest"}}),
		eddafx.Runner(func(b *bus.Bus, s *stock) (*outbox.Relay, error) {
			return bus.NewRelay(b, "stock", outbox.RelayOptions{}, func(_ context.Context,
				all []*saga.Delivery) []error {
				for _, m := range all {
					s.reserved <- string(m.Body)
				}
				return nil
			}, reserve{}.Kind())
		}),
		eddafx.Runner(func() edda.Runner {
			return loop{func(ctx context.Context) error {
				looped <- struct{}{}
				<-ctx.Done()
				return nil
			}}
		}),
		fx.Populate(&b, &store, &publisher),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-looped
	if got := <-relayed; got != `{"Order":"manifest"}` {
		t.Errorf("the relay gave %s, want what the manifest's order sent", got)
	}
	if m, err := store.Manifest(t.Context(), "first"); err != nil || m.Owner != "shop" {
		t.Errorf("the store has %+v, %v", m, err)
	}
	m := message.NewMessage(watermillUUID, []byte(`{"ID":"published"}`))
	if err := publisher.Publish(placeOrder{}.Kind(), m); err != nil {
		t.Fatal(err)
	}
	if got := <-relayed; got != `{"Order":"published"}` {
		t.Errorf("the relay gave %s, want what the published order sent", got)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Errorf("Stop says %v", err)
	}
	if err := publisher.Publish("orders", m); !errors.Is(err, watermill.ErrClosed) {
		t.Errorf("Publish after the stop says %v, want %v", err, watermill.ErrClosed)
	}
}

const watermillUUID = "0198c0de-0000-7000-8000-000000000001"

// A runner that fails ends the app, as an endpoint does.
func TestFailingRunnerStopsTheApp(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	errLoop := errors.New("the loop broke")
	app := build(pool,
		eddafx.Module(bus.Options{Schema: migrated(t, pool), Logger: slog.New(slog.DiscardHandler)}),
		eddafx.Runner(func() edda.Runner { return loop{func(context.Context) error { return errLoop }} }))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if signal := <-app.Wait(); signal.ExitCode != 1 {
		t.Errorf("the app ended with code %d, want 1", signal.ExitCode)
	}
	if err := app.Stop(t.Context()); !errors.Is(err, errLoop) {
		t.Errorf("Stop says %v, want %v", err, errLoop)
	}
}

// A watch of the vitals of the database is a runner as any other, with its checks.
func TestAppWatchesVitals(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	schema := migrated(t, pool)
	alarms := make(chan vitals.Alarm, 1000)
	watch := func(schema string) fx.Option {
		return eddafx.Runner(func(pool *pgxpool.Pool) (*vitals.Watch, error) {
			r, err := vitals.New(pool, vitals.Options{Schema: schema, Thresholds: vitals.Thresholds{
				Connections: vitals.Bound{Warn: 0.001, Bad: 0.001}}})
			return &vitals.Watch{Reader: r, Logger: slog.New(slog.DiscardHandler),
				Notify: func(_ context.Context, a vitals.Alarm) error { alarms <- a; return nil }}, err
		})
	}
	o := bus.Options{Schema: schema, Logger: slog.New(slog.DiscardHandler)}
	app := build(pool, eddafx.Module(o), watch(schema))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for a := range alarms {
		if a.Vital.Name == vitals.Connections && a.Schema == schema {
			break
		}
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := build(pool, eddafx.Module(o), watch("nowhere")).Start(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "migrate") {
		t.Errorf("an app whose watch cannot read starts: %v", err)
	}
}

func TestAppWithoutEndpointsSends(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	app := build(pool, eddafx.Module(bus.Options{Schema: migrated(t, pool)}), fx.Invoke(func(b *bus.Bus) error {
		_, err := b.Publish(t.Context(), placeOrder{ID: "7"})
		return err
	}))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-app.Done():
		t.Error("an app that only sends was stopped")
	default:
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLoggerComesFromTheGraph(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	var (
		written lockedBuffer
		b       *bus.Bus
	)
	reserved := make(chan string, 1)
	s := &stock{reserved: reserved}
	app := build(pool,
		fx.Supply(slog.New(slog.NewTextHandler(&written, nil))),
		eddafx.Module(bus.Options{Schema: migrated(t, pool), AutoInstall: true}),
		eddafx.Endpoint("stock", bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(s.reserve)),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), reserve{Order: "7"}); err != nil {
		t.Fatal(err)
	}
	<-reserved // it runs
	if err := app.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(written.String(), "edda: endpoint started\" endpoint=stock") {
		t.Errorf("the graph's logger was told %q, want the life of the endpoint", written.String())
	}
}

func TestStopTimeoutFollowsDrain(t *testing.T) {
	t.Parallel()
	for drain, want := range map[time.Duration]time.Duration{0: 35 * time.Second, 2 * time.Minute: 125 * time.Second} {
		o := bus.EndpointOptions{Concurrency: 1, Drain: drain}
		for kind, endpoint := range map[string]fx.Option{
			"an endpoint": eddafx.Endpoint("orders", o, bus.Saga(orders)),
			"a partitioned endpoint": eddafx.Partitioned("orders", bus.PartitionOptions{Partitions: 2,
				Endpoint: bus.EndpointOptions{Drain: drain}}, bus.Saga(orders)),
		} {
			app := build(pgdev.Pool(t), eddafx.Module(bus.Options{}), endpoint)
			if app.Err() != nil || app.StopTimeout() != want {
				t.Errorf("with a Drain of %v of %s the app gives the stop %v, want %v (%v)", drain, kind,
					app.StopTimeout(), want, app.Err())
			}
		}
	}
}

// shouting is a codec whose messages no other codec can read.
type shouting struct{ saga.Codec }

func (c shouting) Encode(m saga.Message) ([]byte, error) {
	text, err := c.Codec.Encode(m)
	return bytes.ToUpper(text), err
}

// The messages of manifests are written with the codec of the bus, unless the scheduler has one.
func TestSchedulerHasTheCodecOfTheBus(t *testing.T) {
	t.Parallel()
	pool, schema := pgdev.Pool(t), pgdev.Schema(t)
	app := build(pool, eddafx.Module(bus.Options{Schema: schema, Codec: shouting{saga.JSON},
		Logger: slog.New(slog.DiscardHandler)}), eddafx.Migrate(),
		eddafx.Endpoint("orders", bus.EndpointOptions{Concurrency: 1}, bus.Saga(orders)),
		eddafx.Scheduler(scheduler.Options{Owner: "shop"},
			scheduler.Manifest{Name: "first", When: scheduler.OnDemand(), Message: placeOrder{ID: "manifest"}}))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := ""
	for body == "" {
		_ = pool.QueryRow(t.Context(), `SELECT convert_from(body, 'UTF8') FROM "`+schema+`".manifest`).Scan(&body)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if body != `{"ID":"MANIFEST"}` {
		t.Errorf("the body of the manifest is %s", body)
	}
}

// If a handler does not end within fx's time, Stop returns an error that names the option to raise.
func TestStopSaysWhatToRaise(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	var b *bus.Bus
	entered, leave := make(chan struct{}), make(chan struct{})
	app := build(pool,
		eddafx.Module(bus.Options{Schema: migrated(t, pool), AutoInstall: true}),
		eddafx.Endpoint("stock", bus.EndpointOptions{Concurrency: 1},
			bus.HandleTx(func(*bus.Context, pgx.Tx, reserve) error {
				close(entered)
				<-leave
				return nil
			})),
		fx.Populate(&b),
	)
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), reserve{Order: "7"}); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := app.Stop(ctx); err == nil || !strings.Contains(err.Error(), "fx.StopTimeout") &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop says %v, want the time it had", err)
	}
	close(leave)
}

// programVariable has the name of the program that this process runs in a test.
const programVariable = "EDDA_TEST_PROGRAM"

// programs run two runners: one never returns, the other has returned. They write the line hears when they receive
// signals. ends is their state after a second signal.
var programs = map[string]struct {
	hears string
	run   func()
	ends  string
}{
	"host": {"it runs", func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		host, err := edda.NewHost(idle{}, stubborn{})
		if err == nil {
			err = host.Run(ctx)
		}
		fmt.Fprintln(os.Stderr, err)
	}, "signal: interrupt"},
	"fx": {"it hears", func() {
		pool, err := pgxpool.New(context.Background(), "host=localhost") // which is not used
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		app := build(pool, eddafx.Module(bus.Options{}), eddafx.Runner(func() idle { return idle{} }),
			eddafx.Runner(func() stubborn { return stubborn{} }))
		err = app.Start(context.Background())
		stopped := app.Wait() // fx receives signals from here on
		fmt.Fprintln(os.Stderr, "it hears")
		if <-stopped; err == nil {
			err = app.Stop(context.Background())
		}
		if err != nil {
			os.Exit(1)
		}
	}, "exit status 1"},
}

type idle struct{}

func (idle) Run(context.Context) error { return nil }

type stubborn struct{}

func (stubborn) Name() string { return "stubborn" }

func (stubborn) Run(context.Context) error {
	fmt.Fprintln(os.Stderr, "it runs")
	<-time.After(time.Hour)
	return nil
}

// A process logs which runner it waits for after a signal, and a second signal ends it.
func TestSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	for name, of := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(pgdev.Deadline(t), os.Args[0])
			c.Env = append(os.Environ(), programVariable+"="+name)
			stderr, err := c.StderrPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stderr)
			for _, step := range []struct {
				line string
				then os.Signal
			}{
				{of.hears, syscall.SIGTERM},
				{`edda: the host waits for its runners runners="[\"stubborn\"]"`, os.Interrupt},
			} {
				for !strings.Contains(lines.Text(), step.line) {
					if !lines.Scan() {
						t.Fatalf("the process has ended, and has not written %s: %v", step.line, c.Wait())
					}
				}
				if err := c.Process.Signal(step.then); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Wait(); fmt.Sprint(err) != of.ends {
				t.Errorf("it ended with %v, want %s", err, of.ends)
			}
		})
	}
}

// lockedBuffer is for loggers of several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
