package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/chaos/lab"
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
	lease    = 3 * time.Second // a server that is frozen for longer has lost it
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
	unguard.Lease.Store(s.NoLease)
	unguard.Lock.Store(s.NoLock)
	return w.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		ticks, err := bus.NewEndpoint(b, endpoint, bus.EndpointOptions{}, bus.HandleTx(count))
		if err != nil {
			return nil, err
		}
		o := scheduler.Options{Owner: "chaos", LeaseTTL: lease, Logger: lab.Log(slog.LevelError)}
		schedule, err := scheduler.New(pool, b, o, s.manifests()...)
		return []edda.Runner{ticks, schedule}, err
	})
}

func (s server) manifests() []scheduler.Manifest {
	all := make([]scheduler.Manifest, s.Manifests)
	for i := range all {
		all[i] = scheduler.Manifest{
			Name: fmt.Sprintf(
				"every-second-%04d",
				i,
			), When: scheduler.Every(time.Second), Message: saga.Message(tick{}),
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
	_, err := tx.Exec(ctx, sql.Get("count"), fire.Manifest, fire.Due)
	return err
}
