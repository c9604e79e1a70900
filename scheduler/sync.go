package scheduler

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Changes are what a declaration changes, by name and in the order of names.
type Changes struct {
	Created   []string
	Changed   []Change
	Orphaned  []string // declared no longer: it fires no more, and is deleted after a while unless it is declared again
	Unchanged []string
	Groups    GroupChanges
}

// Change is a manifest or a group that is declared otherwise than it is stored.
type Change struct {
	Name string
	What []string // the fields that differ
}

// GroupChanges are Changes of groups. One that is declared no longer stays as it is, and belongs to nobody.
type GroupChanges struct {
	Created   []string
	Changed   []Change
	Orphaned  []string
	Unchanged []string
}

// None tells whether nothing differs.
func (c Changes) None() bool {
	return len(c.Created)+len(c.Changed)+len(c.Orphaned)+len(c.Groups.Created)+len(c.Groups.Changed)+len(
		c.Groups.Orphaned) == 0
}

// declaration is what one owner says at one time.
type declaration struct {
	owner  string
	groups []groupRow
	rows   []row
	prune  bool // what it leaves out is an orphan
}

// Sync makes what is stored what owner declares, in one transaction. A manifest that owner declared before and leaves
// out now becomes an orphan: it fires no more, keeps what it is due, and comes back when it is declared again; after a
// grace it is deleted. Manifests of other owners are never touched: one of the same name is ErrOwned. What an operator
// has set stays: a pause, and the cap or priority of a group whose declaration is what it was. A changed When begins
// anew; other changes leave the next due time alone.
//
// An empty declaration changes nothing and prunes nothing: a program that lost its list must not stop everything. So
// the last manifest of an owner goes by Remove.
//
// Processes may call it at the same time: each is one transaction, one after the other, and those that find nothing to
// change write nothing. Of two versions of a program the one that starts last has its way.
func (s *Store) Sync(ctx context.Context, owner string, groups []Group, manifests []Manifest) (changes Changes,
	err error) {
	if len(groups)+len(manifests) == 0 {
		return Changes{}, nil
	}
	d, err := s.declare(owner, groups, manifests)
	if err != nil {
		return Changes{}, fmt.Errorf("declare manifests of %q: %w", owner, err)
	}
	err = s.alone(ctx, func(tx pgx.Tx) (err error) {
		changes, err = s.apply(ctx, tx, d)
		return err
	})
	if err != nil {
		return Changes{}, fmt.Errorf("declare manifests of %q: %w", owner, err)
	}
	return changes, nil
}

// Diff is what Sync would change. It writes nothing, and locks nothing.
func (s *Store) Diff(ctx context.Context, owner string, groups []Group, manifests []Manifest) (changes Changes,
	err error) {
	if len(groups)+len(manifests) == 0 {
		return Changes{}, nil
	}
	d, err := s.declare(owner, groups, manifests)
	if err != nil {
		return Changes{}, fmt.Errorf("compare manifests of %q: %w", owner, err)
	}
	return s.compareOnly(ctx, d)
}

var readOnly = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}

func (s *Store) compareOnly(ctx context.Context, d declaration) (changes Changes, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, readOnly, func(tx pgx.Tx) error {
		plan, err := s.compare(ctx, tx, d)
		changes = plan.changes
		return err
	})
	if err != nil {
		return Changes{}, fmt.Errorf("compare manifests of %q: %w", d.owner, err)
	}
	return changes, nil
}

func (s *Store) declare(owner string, groups []Group, manifests []Manifest) (d declaration, err error) {
	if err := checkOwner(owner); err != nil {
		return declaration{}, err
	}
	d = declaration{owner: owner, prune: len(manifests) > 0}
	var groupErr error
	d.groups, groupErr = groupRows(groups)
	if d.rows, err = s.rows(manifests); err != nil || groupErr != nil {
		return declaration{}, some(slices.DeleteFunc([]error{groupErr, err}, func(e error) bool { return e == nil }))
	}
	return d, nil
}

// apply makes the changes. The transaction holds the lock of changes.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, d declaration) (Changes, error) {
	todo, err := s.compare(ctx, tx, d)
	if err != nil || todo.changes.None() {
		return todo.changes, err
	}
	if err := s.writeGroups(ctx, tx, d, todo); err != nil {
		return Changes{}, err
	}
	if err := s.writeManifests(ctx, tx, d, todo); err != nil {
		return Changes{}, err
	}
	return todo.changes, s.call(ctx, tx, toEvaluate)
}

func (s *Store) writeGroups(ctx context.Context, tx pgx.Tx, d declaration, todo comparison) error {
	if len(todo.newGroups) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("insert_groups"), groupColumns(d.owner, todo.newGroups)...); err != nil {
			return fmt.Errorf("create groups: %w", err)
		}
	}
	if len(todo.oldGroups) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("update_groups"), groupColumns(d.owner, todo.oldGroups)...); err != nil {
			return fmt.Errorf("change groups: %w", err)
		}
	}
	if left := todo.changes.Groups.Orphaned; len(left) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("disown_groups"), left); err != nil {
			return fmt.Errorf("give up groups: %w", err)
		}
	}
	return nil
}

func (s *Store) writeManifests(ctx context.Context, tx pgx.Tx, d declaration, todo comparison) error {
	now, err := s.now(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, s.sql.Get("lock_manifests"), todo.ids, todo.changes.Created); err != nil {
		return fmt.Errorf("lock manifests: %w", err)
	}
	if len(todo.orphans) > 0 {
		if err := s.orphan(ctx, tx, todo.orphans); err != nil {
			return err
		}
	}
	if len(todo.update) > 0 {
		if _, err := tx.Exec(ctx, s.sql.Get("update_manifests"), columnsOf(d.owner, now, todo.update)...); err != nil {
			return fmt.Errorf("change manifests: %w", err)
		}
	}
	if len(todo.insert) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, s.sql.Get("answer_anew"), todo.changes.Created); err != nil {
		return fmt.Errorf("let followers count anew: %w", err)
	}
	if _, err := tx.Exec(ctx, s.sql.Get("insert_manifests"), columnsOf(d.owner, now, todo.insert)...); err != nil {
		return fmt.Errorf("create manifests: %w", err)
	}
	return nil
}
