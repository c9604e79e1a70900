package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/runs"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/jackc/pgx/v5/pgxpool"
)

// work is what each manifest emits.
type work struct{ N int }

func (work) Kind() string { return "remote.work" }

const (
	endpoint  = "remote-work"
	manifests = 10

	lease     = 3 * time.Second // of messages, and of the scheduler's: as long stands still what a dead process had
	lostAfter = 3 * time.Second
	every     = lostAfter / 4 // a sign of life

	failing = 20  // one attempt in so many fails
	slow    = 100 // one in so many takes longer than lostAfter
)

func manifest(n int) string { return fmt.Sprintf("remote-%d", n) }

// task is what a worker process is told.
type task struct {
	Here  bool
	Place Place
}

// work is the life of a worker process.
func (w Way) work(ctx context.Context, lw *lab.Worker) error {
	var t task
	if err := lw.Read(&t); err != nil {
		return err
	}
	if !t.Here {
		return w.there(ctx, lw, t.Place)
	}
	return lw.Serve(ctx, func(b *bus.Bus, pool *pgxpool.Pool) ([]edda.Runner, error) {
		reports, err := scheduler.NewReports(pool, "")
		if err != nil {
			return nil, err
		}
		submit, takes, err := w.Here(work{}.Kind(), t.Place, reports, slog.New(dropping{lw.Name, pool}))
		if err != nil {
			return nil, err
		}
		o := bus.EndpointOptions{Concurrency: 20, Lease: lease, Poll: 200 * time.Millisecond, Policy: soon}
		e, err := bus.NewEndpoint(b, endpoint, o, submit)
		if err != nil {
			return nil, err
		}
		s, err := newScheduler(pool, b, lw.Name)
		return []edda.Runner{e, s, takes}, err
	})
}

func newScheduler(pool *pgxpool.Pool, b *bus.Bus, name string) (*scheduler.Scheduler, error) {
	all := make([]scheduler.Manifest, manifests)
	for n := range all {
		all[n] = scheduler.Manifest{Name: manifest(n), When: scheduler.OnDemand(), Message: work{N: -1}, Retries: 100,
			RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Second}
	}
	return scheduler.New(b, scheduler.Options{Owner: "chaos", Logger: lab.Log(slog.LevelError), Holder: name,
		Evaluate: 200 * time.Millisecond, Dispatch: 200 * time.Millisecond, Reconcile: 500 * time.Millisecond,
		LostAfter: lostAfter, Lease: lease, LeaseRenew: time.Second, LeaseAcquire: 500 * time.Millisecond}, all...)
}

// soon submits again at once what could not be submitted, however often.
func soon(f recoverability.Failure) recoverability.Decision {
	if permanent := (*saga.PermanentError)(nil); errors.As(f.Err, &permanent) {
		return recoverability.DeadLetter()
	}
	return recoverability.RetryIn(100 * time.Millisecond)
}

var errChance = errors.New("it failed by chance")

// there is the life of a process without Edda: its database has the ledger alone.
func (w Way) there(ctx context.Context, lw *lab.Worker, at Place) error {
	pool, err := lw.Pool(ctx, "")
	if err != nil {
		return err
	}
	defer pool.Close()
	return w.There(ctx, at, func(ctx context.Context, s Submission, by remote.Reporter) error {
		if _, err := pool.Exec(ctx, sql.Get("begun"), lw.Name, s.ID, s.Attempt); err != nil {
			return err
		}
		return remote.Work(ctx, saying{by, lw.Name, pool}, s.Run, every, func(ctx context.Context) error {
			var m work
			if err := json.Unmarshal(s.Body, &m); err != nil {
				return saga.Permanent(err)
			}
			lasting := time.Duration(rand.Int64N(int64(200 * time.Millisecond)))
			if rand.IntN(slow) == 0 {
				lasting = lostAfter + time.Second
			}
			if err := run.Sleep(ctx, lasting); err != nil {
				return err
			}
			if rand.IntN(failing) == 0 {
				return errChance
			}
			_, err := pool.Exec(ctx, sql.Get("work"), lw.Name, s.Key, s.ID, s.Attempt, s.Manifest, m.N)
			return err
		})
	})
}

// saying writes down what is reported, before it is.
type saying struct {
	remote.Reporter
	worker string
	pool   *pgxpool.Pool
}

func (s saying) End(ctx context.Context, r remote.Run, failure error) error {
	outcome := runs.Succeeded
	if failure != nil {
		outcome = runs.Failed
	}
	if _, err := s.pool.Exec(ctx, sql.Get("said"), s.worker, r.ID, r.Attempt, outcome); err != nil {
		return err
	}
	return s.Reporter.End(ctx, r, failure)
}

func (saying) Log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// dropping is a log whose lines about reports that are dropped go into the ledger.
type dropping struct {
	worker string
	pool   *pgxpool.Pool
}

func (dropping) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (d dropping) Handle(ctx context.Context, line slog.Record) error {
	if !strings.Contains(line.Message, "dropped") {
		return nil
	}
	what := line.Message
	line.Attrs(func(a slog.Attr) bool {
		what += " " + a.String()
		return true
	})
	_, err := d.pool.Exec(context.WithoutCancel(ctx), sql.Get("dropped"), d.worker, what)
	return err
}

func (d dropping) WithAttrs([]slog.Attr) slog.Handler { return d }
func (d dropping) WithGroup(string) slog.Handler      { return d }
