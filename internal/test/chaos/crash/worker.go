package crash

import (
	"context"
	"log/slog"
	"maps"
	"math"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/jackc/pgx/v5/pgxpool"
)

// worker is one process that runs every endpoint of a workload at defaults, except MaxCrashes.
type worker struct {
	Name     string
	Workload workload
}

// workload says which endpoints run.
type workload string

const (
	bare      workload = "bare"  // plain handlers alone
	withSagas workload = "sagas" // these, and sagas of both stores
)

// work is the life of a worker process. It ends by SIGKILL, or when the parent has gone.
func work(ctx context.Context, lw *lab.Worker) error {
	w := &worker{}
	if err := lw.Read(w); err != nil {
		return err
	}
	w.Name = lw.Name
	pool, err := lw.Pool(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	log := lab.Log(slog.LevelWarn)
	endpoints, err := w.endpoints(pool, log) //nolint:contextcheck // a handler is given its own context
	if err != nil {
		return err
	}
	runners := make([]edda.Runner, len(endpoints))
	for i, e := range endpoints {
		runners[i] = e
	}
	lab.Persist(ctx, log, runners...)
	return nil
}

// endpoints makes the bus and its endpoints.
func (w *worker) endpoints(pool *pgxpool.Pool, log *slog.Logger) (all []*bus.Endpoint, err error) {
	b, err := bus.New(pool, bus.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	parts := w.plainEndpoints()
	if w.Workload == withSagas {
		maps.Copy(parts, w.sagaEndpoints())
	}
	for name, p := range parts {
		// A worker is killed wherever it is, and again and again at the same message: no message is to blame for that.
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{MaxCrashes: math.MaxInt32}, p...)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
