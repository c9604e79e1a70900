package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/unguard"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tick is what each manifest emits.
type tick struct{}

func (tick) Kind() string { return "schedule.tick" }

const (
	endpoint = "ticks"
	ttl      = 3 * time.Second // of the lease: a server that is stopped for longer has lost it
)

// serverVariable makes this program a server; its value is the server as JSON.
const serverVariable = "EDDA_SCHEDULE_SERVER"

type server struct {
	DSN       string
	Manifests int
	Mode      mode
}

// start runs the server as a process of its own.
func (s server) start() (*procs.Process, error) {
	return procs.Start(procs.Job{Name: "server", Variable: serverVariable, Task: s, Stderr: os.Stderr})
}

// serve is the whole life of a server process.
func serve(ctx context.Context) error {
	s := server{}
	ctx, err := procs.Attend(ctx, serverVariable, &s)
	if err != nil {
		return err
	}
	unguard.Lease.Store(s.Mode.NoLease)
	unguard.Lock.Store(s.Mode.NoLock)
	pool, err := pgxpool.New(ctx, s.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	b, err := bus.New(pool, bus.Options{Logger: quiet})
	if err != nil {
		return err
	}
	ticks, err := bus.NewEndpoint(b, endpoint, bus.EndpointOptions{}, bus.HandleTx(count))
	if err != nil {
		return err
	}
	schedule, err := scheduler.New(pool, b, scheduler.Options{Owner: "chaos", LeaseTTL: ttl, Logger: quiet},
		manifests(s.Manifests)...)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(pool, ticks, schedule)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func manifests(n int) []scheduler.Manifest {
	all := make([]scheduler.Manifest, n)
	for i := range all {
		all[i] = scheduler.Manifest{
			Name: fmt.Sprintf("every-second-%04d", i), When: scheduler.Every(time.Second),
			Message: saga.Message(tick{}),
			Misfire: scheduler.MisfireAll, MisfireUp: 100_000, Overlap: true,
		}
	}
	return all
}

// count is the effect of a firing.
func count(ctx *bus.Context, tx pgx.Tx, _ tick) error {
	fire := ctx.Info().Fire
	if fire == nil {
		return saga.Permanent(fmt.Errorf("message %s carries no firing", ctx.Info().ID))
	}
	_, err := tx.Exec(ctx, witnessSQL("count"), fire.Manifest, fire.Due, fire.Run)
	return err
}
