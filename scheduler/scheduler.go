package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LeaseName is the name of the lease whose holder evaluates and reconciles.
const LeaseName = dispatch.LeaseName

// Scheduler evaluates, dispatches, reconciles and cleans up: see the package's comment. It is safe for concurrent use.
type Scheduler struct {
	*Store
	engine     *dispatch.Engine
	schema     string // its name
	options    Options
	declared   declaration
	singletons singletons
	running    sync.Mutex // held by Run
}

// New makes a Scheduler that sends by sender, in its database and schema. It does no I/O. The manifests belong to
// Options.Owner; Run writes them to the database. New returns an error that names each faulty option and manifest.
func New(sender Sender, o Options, m ...Manifest) (*Scheduler, error) {
	s, err := newScheduler(sender, o)
	if err == nil && (o.Owner != "" || len(o.Groups)+len(m) > 0) {
		s.declared, err = s.declare(o.Owner, o.Groups, m)
	}
	if err != nil {
		return nil, fmt.Errorf("new scheduler: %w", err)
	}
	return s, nil
}

func newScheduler(sender Sender, o Options) (s *Scheduler, err error) {
	if sender == nil {
		return nil, errors.New("the Sender must not be nil")
	}
	pool, name := sender.Database()
	if pool == nil {
		return nil, errors.New("the Sender has no pool")
	}
	schema, err := pg.ParseSchema(name)
	if err != nil {
		return nil, err
	}
	s = &Scheduler{options: o, schema: name}
	if s.Store, err = NewStore(pool, StoreOptions{Schema: name, Codec: o.Codec}); err != nil {
		return nil, err
	}
	s.engine, err = dispatch.New(pool, schema, sender, o.engine(s.singletons.heard))
	return s, err
}

// Name returns "scheduler", for a Host.
func (s *Scheduler) Name() string { return LeaseName }

// Connections returns the pool, and how many connections Run opens in addition to the pool's: one for the lease, one
// for each Singleton, and one that listens. With PollOnly it returns 0, because a pooler's connections are not counted.
func (s *Scheduler) Connections() (pool *pgxpool.Pool, more int) {
	if s.options.PollOnly {
		return s.pool.Pool, 0 // a pooler's connections are not counted
	}
	return s.pool.Pool, 2 + s.singletons.connections()
}

// Check returns an error if Run could not work: the tables are missing, this role may not use them, or the pool has
// fewer connections than MaxConcurrentDispatch + 1.
func (s *Scheduler) Check(ctx context.Context) error { return s.engine.Check(ctx) }

// ErrRunning means that Run was called while Run of the same Scheduler or Singleton was running.
var ErrRunning = errors.New("already running")

// Run writes the declaration to the database, and then evaluates, dispatches, reconciles and cleans up until ctx
// ends. Then it waits for its last transaction and returns nil. While it runs it renews its declaration, so that
// programs of other releases do not orphan its manifests. If the database is away, Run waits for it. Run returns an
// error if waiting cannot help: the declaration contradicts the database, a right is missing, or the schema is not
// migrated. It returns ErrRunning if Run is already running.
func (s *Scheduler) Run(ctx context.Context) error {
	if !s.running.TryLock() {
		return fmt.Errorf("run the scheduler: %w", ErrRunning)
	}
	defer s.running.Unlock()
	d := s.declared
	d.by = &program{id: dispatch.NewRunID(), grace: cmp.Or(s.options.OrphanGrace, dispatch.OrphanGrace),
		expires: cmp.Or(s.options.Lease, lease.Default)}
	if err := s.synchronise(ctx, d); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("run scheduler: %w", err)
	}
	group := run.NewGroup(ctx)
	s.singletons.start(group)
	group.Go(s.engine.Run)
	if !d.empty() {
		group.Go(func(ctx context.Context) error { return s.keepDeclared(ctx, d) })
	}
	return group.Wait()
}

func (d declaration) empty() bool { return len(d.groups)+len(d.rows) == 0 }

// synchronise retries until the declaration is written, or until an error occurs that will not pass.
func (s *Scheduler) synchronise(ctx context.Context, d declaration) error {
	if d.empty() {
		return nil
	}
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := s.declareOnce(ctx, d)
		if err == nil || !dispatch.Passing(err) {
			return err
		}
		s.engine.Calm().Warn("edda: the manifests could not be written to the database yet", "error", err)
		if err := run.Sleep(ctx, retry.NextBackOff()); err != nil {
			return err
		}
	}
}

// declareOnce writes the declaration, and logs the changes that it has made.
func (s *Scheduler) declareOnce(ctx context.Context, d declaration) error {
	changes, err := s.store(ctx, d)
	if err != nil {
		return fmt.Errorf("declare manifests of %q: %w", d.owner, err)
	}
	log := s.engine.Calm()
	if !changes.None() {
		log.Info("edda: manifests declared", "owner", d.owner, "release", d.by.release, "created",
			len(changes.Created), "changed", len(changes.Changed), "orphaned", len(changes.Orphaned))
	}
	for _, name := range changes.Orphaned {
		log.Warn("edda: a manifest is an orphan and fires no more: no running program declares it", "manifest", name,
			"owner", d.owner)
	}
	return nil
}

// keepDeclared renews the row of this program. It declares the manifests again when a release of the owner has
// started or ended, and at every Reconcile interval. At the end it deletes the row.
func (s *Scheduler) keepDeclared(ctx context.Context, d declaration) error {
	defer s.leave(ctx, d)
	d.by.runs = true
	every, again := d.by.expires/3, cmp.Or(s.options.Reconcile, dispatch.Reconcile)
	var running []int64
	var next time.Time
	var fault string
	for run.Sleep(ctx, run.Jitter(every)) == nil {
		now, known, err := s.renew(ctx, d)
		if err == nil && (!known || !slices.Equal(now, running) || time.Now().After(next)) {
			s.tellReleases(d, now, running)
			err = s.declareOnce(ctx, d)
			running, next = now, time.Now().Add(run.Jitter(again))
		}
		if err = cmp.Or(err, d.by.faults); err == nil || ctx.Err() != nil {
			fault = ""
			continue
		}
		if text := err.Error(); text != fault {
			s.engine.Calm().Warn("edda: manifests were not declared again", "owner", d.owner, "error", err)
			fault = text
		}
	}
	return nil
}

// tellReleases logs which releases run, when several do or have just ceased to.
func (s *Scheduler) tellReleases(d declaration, now, before []int64) {
	if slices.Equal(now, before) || len(now) < 2 && len(before) < 2 {
		return
	}
	s.engine.Calm().Info("edda: programs of these releases declare manifests, and the last one decides", "owner",
		d.owner, "releases", now, "release", d.by.release)
}

// declareWithin limits a renewal of the program's row, as the loops of the engine are limited.
const declareWithin = 40 * time.Second

func (s *Scheduler) renew(ctx context.Context, d declaration) (running []int64, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, declareWithin)
	defer cancel()
	err = s.pool.Row(ctx, s.sql.Get("renew_program"), d.by.id, d.owner, d.by.expires.Microseconds()).Scan(&known,
		&running)
	return running, known, err
}

// leave deletes the program's row. If that fails, the row expires.
func (s *Scheduler) leave(ctx context.Context, d declaration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := s.pool.Exec(ctx, s.sql.Get("leave_program"), d.by.id); err != nil {
		s.engine.Calm().Debug("edda: the declaration of a program was not withdrawn", "error", err)
	}
}

// Depth is the amount of work that waits for schedulers, by the database's clock. All servers read the same. Counts end
// at MaxCount.
type Depth struct {
	Late time.Duration // how long the first due manifest has waited to be evaluated; 0 if nothing is due
	// how long a queued run has waited to be dispatched: the longest of the counted runs; 0 if no run is queued
	Behind time.Duration

	Waiting int64 // runs that wait for a time: a delay, or the pause before a retry
	Queued  int64 // runs that wait to be dispatched
	Active  int64 // runs whose message is queued or being handled
	Dead    int64 // runs that failed for good and wait for an operator

	// within the last hour, without an operator's request
	TimedOut int64 // runs that took longer than their Timeout
	Lost     int64 // attempts whose handler gave no sign of life
	Skipped  int64 // manifests with due times that passed without a run
	Orphaned int64 // manifests that no running program declares, without manifests that an operator removed
}

// Depth reads how much work waits, in one statement. Its cost does not depend on the number of runs that have ended.
func (s *Scheduler) Depth(ctx context.Context) (d Depth, err error) {
	var late, behind float64
	row := s.pool.QueryRow(ctx, s.sql.Get("depth"), pg.Planned, MaxCount)
	if err := row.Scan(&late, &behind, &d.Queued, &d.Waiting, &d.Active, &d.Dead, &d.TimedOut,
		&d.Lost, &d.Skipped, &d.Orphaned); err != nil {
		return Depth{}, fmt.Errorf("count the waiting runs and manifests: %w", err)
	}
	d.Late, d.Behind = seconds(late), seconds(behind)
	return d, nil
}

// seconds never returns less than 0: the database's clock may have been set back.
func seconds(s float64) time.Duration { return time.Duration(max(0, s) * float64(time.Second)) }
