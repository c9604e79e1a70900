package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/chaos/lab"
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
	term     = 3 * time.Second // of the lease: a server that is frozen for longer has lost it
)

// server is the task of a server process.
type server struct {
	Manifests       int
	NoLease, NoLock bool
}

// serve is the life of a server process.
func serve(ctx context.Context, w *lab.Worker) error {
	s := server{}
	if err := w.Read(&s); err != nil {
		return err
	}
	return w.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		ticks, err := bus.NewEndpoint(b, endpoint, bus.EndpointOptions{}, bus.HandleTx(count))
		if err != nil {
			return nil, err
		}
		schedule, err := s.scheduler(ctx, pool, b)
		return append(schedule, ticks), err
	})
}

// scheduler is a Scheduler. Without the lock every try for it succeeds; without the lease another engine evaluates and
// reconciles beside the Scheduler, and asks for none.
func (s server) scheduler(ctx context.Context, pool *pgxpool.Pool, b *bus.Bus) ([]edda.Runner, error) {
	log := lab.Log(slog.LevelError)
	if s.NoLock {
		config := pool.Config()
		config.ConnConfig.RuntimeParams["search_path"] = "chaos, pg_catalog" // see no_lock
		var err error
		if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, pool.Close)
	}
	all, err := scheduler.New(b, scheduler.Options{Owner: "chaos", Lease: term, Logger: log}, s.manifests()...)
	if err != nil || !s.NoLease {
		return []edda.Runner{all}, err
	}
	schema, err := pg.ParseSchema("")
	if err != nil {
		return nil, err
	}
	engine, err := dispatch.New(pool, schema, b, dispatch.Options{Logger: log})
	return []edda.Runner{all, unled{engine}}, err
}

// unled leads without the lease.
type unled struct{ engine *dispatch.Engine }

func (u unled) Run(ctx context.Context) error { return u.engine.Lead(ctx, lease.Term{}) }

func (s server) manifests() []scheduler.Manifest {
	all := make([]scheduler.Manifest, s.Manifests)
	for i := range all {
		all[i] = scheduler.Manifest{
			Name: fmt.Sprintf("every-second-%04d", i),
			When: scheduler.Every(time.Second), Message: saga.Message(tick{}),
			Misfire: scheduler.MisfireAll, MisfireUp: 100_000, Overlap: true,
		}
	}
	return all
}

// count is the effect of a firing.
func count(ctx *bus.Context, tx pgx.Tx, _ tick) error {
	fire := ctx.Info().Firing
	if fire == nil {
		return saga.Permanent(fmt.Errorf("message %s carries no firing", ctx.Info().ID))
	}
	_, err := tx.Exec(ctx, sql.Get("count"), fire.Manifest, fire.Due)
	return err
}
