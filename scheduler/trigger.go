package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/internal/engine/dispatch"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// TriggerOptions configure one Trigger. Every zero is a default.
type TriggerOptions struct {
	Delay    time.Duration // before the run is queued; 0 is no delay; at most ten years
	Priority int           // 1 to 31; 0 is the priority of the manifest
}

// Trigger queues a run of a manifest outside of its schedule, even if the manifest is paused. input is sent in place
// of the manifest's own message and must be of the same kind; nil is the manifest's message. Each call creates a new
// run, even if others are open. Trigger writes an audit entry only if ctx has an operate.Actor, because programs
// trigger too. It returns ErrNoManifest if the manifest does not exist or is an orphan.
func (s *Store) Trigger(ctx context.Context, manifest string, input saga.Message, o TriggerOptions) (saga.ID, error) {
	run := dispatch.NewRunID()
	kind, body, err := s.input(input)
	switch {
	case err != nil:
	case o.Delay < 0 || o.Delay > plan.Longest:
		err = fmt.Errorf("Delay: %v: want 0 to %v", o.Delay, plan.Longest)
	case o.Priority < 0 || o.Priority > maxPriority:
		err = fmt.Errorf("Priority: %d: want 0 to %d", o.Priority, maxPriority)
	default:
		err = s.trigger(ctx, manifest, []any{run, o.Delay.Microseconds(), o.Priority, kind, body})
	}
	if err != nil {
		return saga.ID{}, fmt.Errorf("trigger manifest %.140q: %w", manifest, err)
	}
	return run, nil
}

// input encodes a message for the columns kind and body: null for nil.
func (e encoder) input(m saga.Message) (kind *string, body []byte, err error) {
	if m == nil {
		return nil, nil, nil
	}
	text, body, err := e.encode(m)
	if err != nil {
		return nil, nil, fmt.Errorf("input: %w", err)
	}
	return &text, body, nil
}

func (s *Store) trigger(ctx context.Context, manifest string, args []any) error {
	var (
		kind, called     string
		orphaned, queued bool
	)
	err := s.change(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, s.sql.Get("trigger"), append([]any{manifest}, args...)...).Scan(&kind, &orphaned,
			&queued, &called)
		if err != nil || !queued || audit.ActorOf(ctx).Name == "" {
			return err
		}
		return s.audit.Add(ctx, tx, audit.Change{Verb: "manifest.trigger", Target: manifest,
			After: map[string]any{"run": args[0]}})
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows) || pgerr.Constraint(err) == "run_manifest_fkey":
		return ErrNoManifest
	case err != nil:
		return err
	case orphaned:
		return fmt.Errorf("it is an orphan: declare it again, or remove it: %w", ErrNoManifest)
	case !queued:
		return fmt.Errorf("its message is of kind %s, and the input of a different kind", kind)
	}
	return nil
}

// Activate queues a run of a Dormant manifest, from a handler of a run of its parent: fire is the ctx.Info().Firing of
// that handler. input is used as by Trigger. If an activation of the manifest is open (waiting, queued, active or
// dead), Activate returns that run and fresh is false. It returns ErrNotCurrent if fire is not of a current run of
// the parent, and ErrNoManifest if the manifest does not exist or is an orphan.
//
// Activate commits even if the handler fails after it. The next attempt then finds the run open, or activates a
// second run if the first has ended. ActivateTx has no such gap.
func (s *Store) Activate(ctx context.Context, fire saga.Firing, manifest string, input saga.Message) (run saga.ID,
	fresh bool, err error) {
	return s.activate(ctx, s.pool, activation{fire, manifest, input})
}

// ActivateTx is Activate in the transaction of the handler.
func (s *Store) ActivateTx(ctx context.Context, tx pgx.Tx, fire saga.Firing, manifest string,
	input saga.Message) (run saga.ID, fresh bool, err error) {
	return s.activate(ctx, tx, activation{fire, manifest, input})
}

type activation struct {
	fire     saga.Firing
	manifest string
	input    saga.Message
}

type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (s *Store) activate(ctx context.Context, db queryer, a activation) (run saga.ID, fresh bool, err error) {
	kind, body, err := s.input(a.input)
	if err == nil && a.fire.Run.IsZero() {
		err = fmt.Errorf("no run: a dormant manifest is activated by a handler of its parent's run: %w", ErrNotCurrent)
	}
	for tries := 0; err == nil && tries < mostRaces && run.IsZero(); tries++ {
		// The statement finds no run if an activation commits or ends between its snapshot and its read of the index.
		run, fresh, err = s.tryActivate(ctx, db, a,
			[]any{a.manifest, a.fire.Run, a.fire.Attempt, a.fire.Manifest, dispatch.NewRunID(), kind, body})
	}
	if err == nil && run.IsZero() {
		err = ErrTaken
	}
	if err != nil {
		return saga.ID{}, false, fmt.Errorf("activate manifest %.140q: %w", a.manifest, err)
	}
	return run, fresh, nil
}

func (s *Store) tryActivate(ctx context.Context, db queryer, a activation, args []any) (run saga.ID, fresh bool,
	err error) {
	var (
		kind, called            string
		orphaned, ours, current bool
		queued, open            *saga.ID
	)
	err = db.QueryRow(ctx, s.sql.Get("activate"), append([]any{pg.Planned}, args...)...).Scan(&kind, &orphaned, &ours,
		&current, &queued, &open, &called)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return run, false, ErrNoManifest
	case err != nil:
		return run, false, err
	case orphaned:
		return run, false, fmt.Errorf("it is an orphan: declare it again, or remove it: %w", ErrNoManifest)
	case !ours:
		return run, false, fmt.Errorf("it is not Dormant under %s: %w", a.fire.Manifest, ErrNotCurrent)
	case !current:
		return run, false, fmt.Errorf("run %s, attempt %d: %w", a.fire.Run, a.fire.Attempt, ErrNotCurrent)
	case a.input != nil && a.input.Kind() != kind:
		return run, false, fmt.Errorf("its message is of kind %s, and input of %s", kind, a.input.Kind())
	case queued != nil:
		return *queued, true, nil
	case open != nil:
		return *open, false, nil
	}
	return run, false, nil
}
