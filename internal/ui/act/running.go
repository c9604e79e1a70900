package act

import (
	"context"
	"log/slog"
	"sync"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/handlers"
)

// Jobs runs jobs on dead letters in the background. A job is a row, so an interrupted one continues when it is run
// again. Safe for concurrent use.
type Jobs struct {
	desk   *Desk
	log    *slog.Logger
	group  *run.Group
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	running map[int64]bool // by number; true: another Run was requested in the meantime
}

// NewJobs returns the Jobs of a desk. Close ends them.
func NewJobs(d *Desk, log *slog.Logger) *Jobs {
	j := &Jobs{desk: d, log: log, running: map[int64]bool{}}
	//nolint:forbidigo // a job lives longer than the request that begins it
	j.ctx, j.cancel = context.WithCancel(context.Background())
	j.group = run.NewGroup(j.ctx)
	d.Jobs = j
	return j
}

// Close interrupts the jobs that run here, and returns when all have ended. It may be called more than once.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.cancel()
	j.mu.Unlock()
	_ = j.group.Wait() // a job that fails is logged
}

// Run runs a job to its end. If the job already runs here, it is checked once more when it ends: it may just be
// pausing.
func (j *Jobs) Run(number int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, runs := j.running[number]; runs || j.ctx.Err() != nil {
		j.running[number] = true
		return
	}
	j.running[number] = false
	j.group.Go(func(ctx context.Context) error {
		for again := true; again; again = j.again(number) {
			err := j.once(ctx, number)
			if err != nil && ctx.Err() == nil {
				j.log.WarnContext(ctx, "edda: ui: a job of dead letters was interrupted", "job", number, "error", err)
			}
		}
		return nil
	})
}

// once runs a job. A panic interrupts the job and not the process.
func (j *Jobs) once(ctx context.Context, number int64) (err error) {
	defer handlers.Recovered(&err)
	_, err = j.desk.letters().RunJob(ctx, number, nil)
	return err
}

// again reports whether a job is to be checked once more. Otherwise it does not run here any more.
func (j *Jobs) again(number int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	again := j.running[number] && j.ctx.Err() == nil
	if j.running[number] = false; !again {
		delete(j.running, number)
	}
	return again
}
