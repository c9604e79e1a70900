package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// mostNote is the maximum length of the reason of a pause or the note of a run, in bytes.
const mostNote = 4096

func checkNote(what, text string) error {
	if len(text) > mostNote || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%s of %d bytes: want text of at most %d: %w", what, len(text), mostNote, saga.ErrInvalidText)
	}
	return nil
}

// Put creates or changes one manifest at run time. The manifest belongs to no program: its owner is "". Putting a
// manifest as it is stored changes nothing. Put returns ErrOwned if a program declares the manifest.
func (s *Store) Put(ctx context.Context, m Manifest) error {
	r, err := s.row(m)
	if err != nil {
		return fmt.Errorf("put %w", err)
	}
	err = s.alone(ctx, func(tx pgx.Tx) error {
		changes, err := declaring{s.tables, declaration{rows: []row{r}}, tx}.apply(ctx)
		if err != nil {
			return err
		}
		return s.audit.addDeclared(ctx, tx, audit.Change{Verb: "manifest.put", Target: m.Name}, changes)
	})
	if err != nil {
		return fmt.Errorf("put manifest %s: %w", m.Name, err)
	}
	return nil
}

// Remove makes a manifest of any owner an orphan: it no longer fires, its runs that were never sent are cancelled, and
// after Options.Retention it is deleted with the records of its runs. Runs that were sent continue to their end. A
// program that declares the manifest and starts later restores it, with the settings of operators; another owner may
// use the name from now on. Removing it again returns nil. Remove returns ErrNoManifest if it does not exist.
func (s *Store) Remove(ctx context.Context, name string) error {
	id := int64(0)
	err := s.alone(ctx, func(tx pgx.Tx) (err error) {
		if id, err = s.manifestID(ctx, tx, name); err != nil {
			return err
		}
		before, err := s.audit.state(ctx, tx, "manifest_state", name)
		if err == nil {
			err = s.orphan(ctx, tx, []int64{id}, true)
		}
		if err != nil {
			return err
		}
		return s.audit.addState(ctx, tx, audit.Change{Verb: "manifest.remove", Target: name, Before: before},
			"manifest_state")
	})
	if err == nil {
		_, err = s.cancelAll(ctx, choice{sql: s.sql.Get("runs_not_sent"), of: id}, "its manifest was removed")
	}
	if err != nil {
		return fmt.Errorf("remove manifest %.140q: %w", name, err)
	}
	return nil
}

func (t tables) orphan(ctx context.Context, tx pgx.Tx, ids []int64, byPerson bool) error {
	if _, err := tx.Exec(ctx, t.sql.Get("orphan"), ids, byPerson); err != nil {
		return fmt.Errorf("mark orphans: %w", err)
	}
	return nil
}

// Pause stops a manifest from firing until Resume, also across deploys. After Resume its misfire policy decides about
// the due times that have passed. Queued and active runs continue, and a Trigger or an Activate of a handler still
// begins a run. Pausing again changes the reason, at most 4,096 bytes. Pause returns ErrNoManifest if it does not
// exist.
func (s *Store) Pause(ctx context.Context, name, reason string) error {
	if err := checkNote("reason", reason); err != nil {
		return fmt.Errorf("pause manifest %.140q: %w", name, err)
	}
	return s.setPause(ctx, audit.Change{Verb: "manifest.pause", Target: name, Reason: reason}, s.sql.Get("pause"), name,
		reason, audit.ActorOf(ctx).Name)
}

// Resume ends the pause of an operator. It changes neither Paused in the declaration nor the pause of the group. It
// returns ErrNoManifest if the manifest does not exist.
func (s *Store) Resume(ctx context.Context, name string) error {
	return s.setPause(ctx, audit.Change{Verb: "manifest.resume", Target: name}, s.sql.Get("resume"), name)
}

func (t tables) setPause(ctx context.Context, c audit.Change, sql string, args ...any) error {
	return t.wakeAfter(ctx, c, "manifest_state", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNoManifest
		}
		return err
	})
}

// wakeAfter makes a change, writes the audit entry and wakes the evaluators. state is the statement that reads the
// audited state.
func (t tables) wakeAfter(ctx context.Context, c audit.Change, state string, change func(tx pgx.Tx) error) error {
	err := t.alone(ctx, func(tx pgx.Tx) error {
		c := c
		before, err := t.audit.state(ctx, tx, state, c.Target)
		if err == nil {
			err = change(tx)
		}
		if err != nil {
			return err
		}
		c.Before = before
		if err := t.audit.addState(ctx, tx, c, state); err != nil {
			return err
		}
		return t.wake(ctx, tx, toEvaluate)
	})
	if err != nil {
		what, verb, _ := strings.Cut(c.Verb, ".")
		return fmt.Errorf("%s %s %.140q: %w", verb, what, c.Target, err)
	}
	return nil
}

// PauseGroup is Pause for all manifests of a group, including manifests that join later. Queued runs of a paused
// group are not dispatched either. PauseGroup returns ErrNoGroup if the group does not exist.
func (s *Store) PauseGroup(ctx context.Context, name, reason string) error {
	if err := checkNote("reason", reason); err != nil {
		return fmt.Errorf("pause group %.140q: %w", name, err)
	}
	return s.setGroupPause(ctx, audit.Change{Verb: "group.pause", Target: name, Reason: reason},
		s.sql.Get("pause_group"), name, reason, audit.ActorOf(ctx).Name)
}

// ResumeGroup ends the pause of a group. Manifests that are paused themselves stay paused. It returns ErrNoGroup if
// there is no such group.
func (s *Store) ResumeGroup(ctx context.Context, name string) error {
	return s.setGroupPause(ctx, audit.Change{Verb: "group.resume", Target: name}, s.sql.Get("resume_group"), name)
}

func (t tables) setGroupPause(ctx context.Context, c audit.Change, sql string, args ...any) error {
	return t.wakeAfter(ctx, c, "group_state", func(tx pgx.Tx) error {
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

// SetGroup sets the Max, Strict and Priority of a group, and creates the group if it does not exist. The setting
// lasts until the program that declares the group changes its declaration. Lowering Max ends no run.
func (s *Store) SetGroup(ctx context.Context, g Group) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("set group %.140q: %w", g.Name, err)
	}
	err := s.alone(ctx, func(tx pgx.Tx) error {
		before, err := s.audit.state(ctx, tx, "group_state", g.Name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql.Get("set_group"), g.Name, g.Max, g.Strict, g.Priority); err != nil {
			return err
		}
		c := audit.Change{Verb: "group.set", Target: g.Name, Before: before}
		if err := s.audit.addState(ctx, tx, c, "group_state"); err != nil {
			return err
		}
		return s.wake(ctx, tx, toDispatch)
	})
	if err != nil {
		return fmt.Errorf("set group %s: %w", g.Name, err)
	}
	return nil
}

// auditor writes the changes of programs and operators into the audit.
type auditor struct {
	*audit.Store
	sql pg.Statements
}

// stateSQL returns the statement that reads the audited state of a manifest or a group.
func (a auditor) stateSQL(of string) string {
	if of == "group_state" {
		return a.sql.Get("group_state")
	}
	return a.sql.Get("manifest_state")
}

// state returns the audited state of a manifest or a group, {} if it does not exist.
func (a auditor) state(ctx context.Context, tx pgx.Tx, of, name string) (state json.RawMessage, err error) {
	err = tx.QueryRow(ctx, a.stateSQL(of), name).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return json.RawMessage("{}"), nil
	}
	return state, err
}

// addState adds the entry of a change that has been made.
func (a auditor) addState(ctx context.Context, tx pgx.Tx, c audit.Change, of string) error {
	after, err := a.state(ctx, tx, of, c.Target)
	if err != nil {
		return err
	}
	c.After = after
	return a.Add(ctx, tx, c)
}

// addDeclared adds the entry of a declaration, unless the declaration has changed nothing.
func (a auditor) addDeclared(ctx context.Context, tx pgx.Tx, c audit.Change, changes Changes) error {
	if changes.None() {
		return nil
	}
	told := map[string][]string{}
	tell := func(what string, names []string) {
		if len(names) > 0 {
			told[what] = names
		}
	}
	tell("created", changes.Created)
	tell("changed", namesOf(changes.Changed))
	tell("orphaned", changes.Orphaned)
	tell("groups_created", changes.Groups.Created)
	tell("groups_changed", namesOf(changes.Groups.Changed))
	tell("groups_orphaned", changes.Groups.Orphaned)
	c.After = told
	return a.Add(ctx, tx, c)
}

func namesOf(changes []Change) (names []string) {
	for _, c := range changes {
		names = append(names, c.Name)
	}
	return names
}

// addRun adds the entry of a change of a run's state.
func (a auditor) addRun(ctx context.Context, tx pgx.Tx, c audit.Change, before, after RunState) error {
	c.Before, c.After = map[string]RunState{"state": before}, map[string]RunState{"state": after}
	return a.Add(ctx, tx, c)
}

// addRuns adds the entry of a change of n runs, unless n is 0 or the change has no verb.
func (a auditor) addRuns(ctx context.Context, tx pgx.Tx, c audit.Change, n int) error {
	if n == 0 || c.Verb == "" {
		return nil
	}
	c.After = map[string]int{"runs": n}
	return a.Add(ctx, tx, c)
}
