package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// mostNote is how long the reason of a pause or the note about a run may be, in bytes.
const mostNote = 4096

func checkNote(what, text string) error {
	if len(text) > mostNote || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%s of %d bytes: want text of at most %d: %w", what, len(text), mostNote, saga.ErrInvalidText)
	}
	return nil
}

// Put makes or changes one manifest at run time. It belongs to no program: its owner is "". ErrOwned if a program
// declares it. Putting a manifest as it is stored changes nothing.
func (s *Store) Put(ctx context.Context, m Manifest) error {
	r, err := s.row(m)
	if err != nil {
		return fmt.Errorf("put %w", err)
	}
	err = s.alone(ctx, func(tx pgx.Tx) error {
		_, err := declaring{s.tables, declaration{rows: []row{r}}, tx}.apply(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("put manifest %s: %w", m.Name, err)
	}
	return nil
}

// Remove makes a manifest of any owner an orphan: it no longer fires, its runs that were never sent are cancelled, and
// after a grace period it is deleted with the record of its runs. Runs that were sent continue to their end. If a
// program still declares the manifest, its next declaration brings it back; another owner may use the name from now on.
// Removing twice is no error. ErrNoManifest if there is none.
func (s *Store) Remove(ctx context.Context, name string) error {
	id := int64(0)
	err := s.alone(ctx, func(tx pgx.Tx) (err error) {
		if id, err = s.manifestID(ctx, tx, name); err != nil {
			return err
		}
		return s.orphan(ctx, tx, []int64{id})
	})
	if err == nil {
		_, err = s.cancelAll(ctx, choice{sql: s.sql.Get("runs_not_sent"), of: id}, "its manifest was removed")
	}
	if err != nil {
		return fmt.Errorf("remove manifest %.140q: %w", name, err)
	}
	return nil
}

func (t tables) orphan(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if _, err := tx.Exec(ctx, t.sql.Get("orphan"), ids); err != nil {
		return fmt.Errorf("mark orphans: %w", err)
	}
	return nil
}

// Pause stops a manifest from firing until Resume, also across deploys. Then its misfire policy decides about the due
// times that have passed. Runs that are queued or active continue, and a Trigger or a handler's Activate still begins
// one. Pausing again changes the reason. ErrNoManifest if there is none.
func (s *Store) Pause(ctx context.Context, name, reason string) error {
	if err := checkNote("reason", reason); err != nil {
		return fmt.Errorf("pause manifest %.140q: %w", name, err)
	}
	return s.setPause(ctx, "pause", name, s.sql.Get("pause"), name, reason)
}

// Resume ends the pause of an operator. Paused in the declaration and a pause of the group are not changed.
// ErrNoManifest if there is none.
func (s *Store) Resume(ctx context.Context, name string) error {
	return s.setPause(ctx, "resume", name, s.sql.Get("resume"), name)
}

func (t tables) setPause(ctx context.Context, what, name, sql string, args ...any) error {
	return t.wakeAfter(ctx, what+" manifest", name, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNoManifest
		}
		return err
	})
}

// wakeAfter changes something for which evaluators are woken then.
func (t tables) wakeAfter(ctx context.Context, what, name string, change func(tx pgx.Tx) error) error {
	err := t.alone(ctx, func(tx pgx.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return t.wake(ctx, tx, toEvaluate)
	})
	if err != nil {
		return fmt.Errorf("%s %.140q: %w", what, name, err)
	}
	return nil
}

// PauseGroup is Pause for all manifests of a group, including those that join later. Queued runs of a paused group are
// not dispatched either. ErrNoGroup if there is none.
func (s *Store) PauseGroup(ctx context.Context, name, reason string) error {
	if err := checkNote("reason", reason); err != nil {
		return fmt.Errorf("pause group %.140q: %w", name, err)
	}
	return s.setGroupPause(ctx, "pause", name, s.sql.Get("pause_group"), name, reason)
}

// ResumeGroup ends the pause of a group. Manifests that are paused themselves stay paused. ErrNoGroup if there is none.
func (s *Store) ResumeGroup(ctx context.Context, name string) error {
	return s.setGroupPause(ctx, "resume", name, s.sql.Get("resume_group"), name)
}

func (t tables) setGroupPause(ctx context.Context, what, name, sql string, args ...any) error {
	return t.wakeAfter(ctx, what+" group", name, func(tx pgx.Tx) error {
		id := int32(0)
		err := tx.QueryRow(ctx, sql, args...).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoGroup
		}
		if err == nil {
			_, err = tx.Exec(ctx, t.sql.Get("enliven_group"), id)
		}
		return err
	})
}

// SetGroup sets the cap and the priority of a group, and makes it if there is none. The setting lasts until the program
// that declares the group changes its declaration. Lowering the cap ends no run.
func (s *Store) SetGroup(ctx context.Context, g Group) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("set group %.140q: %w", g.Name, err)
	}
	err := s.alone(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.sql.Get("set_group"), g.Name, g.Max, g.Strict, g.Priority); err != nil {
			return err
		}
		return s.wake(ctx, tx, toDispatch)
	})
	if err != nil {
		return fmt.Errorf("set group %s: %w", g.Name, err)
	}
	return nil
}
