package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Changes are the changes that a declaration makes, in the order of names.
type Changes struct {
	Created   []string
	Changed   []Change
	Orphaned  []string // no longer declared: it does not fire until it is declared again
	Unchanged []string
	Groups    GroupChanges
}

// Change is a manifest or a group whose declaration differs from the stored one.
type Change struct {
	Name string
	What []string // names of the fields that differ
}

// GroupChanges are Changes of groups. A group that is no longer declared stays as it is, without an owner.
type GroupChanges struct {
	Created   []string
	Changed   []Change
	Orphaned  []string
	Unchanged []string
}

// None reports whether there is no change.
func (c Changes) None() bool {
	return len(c.Created)+len(c.Changed)+len(c.Orphaned)+len(c.Groups.Created)+len(c.Groups.Changed)+len(
		c.Groups.Orphaned) == 0
}

// declaration is one declaration of an owner.
type declaration struct {
	owner  string
	groups []groupRow
	rows   []row
	prune  bool     // manifests of the owner that it leaves out become orphans
	by     *program // nil unless a Scheduler declares
	rivals rivals
}

// program is a Scheduler that runs with a declaration.
type program struct {
	id             saga.ID
	started        time.Time // by the database's clock; zero before it is entered
	release        int64     // the number of its declaration
	grace, expires time.Duration
	runs           bool  // it has declared its manifests, and does so again and again
	faults         error // of the last declaration
}

// rivals are the other releases of the owner that run, or ran until shortly before.
type rivals struct {
	decided, decidedGroups map[string]bool // by a running release with a larger number, in place of this one
	kept, keptGroups       map[string]bool // declared by any of these releases, so not orphaned
}

// Sync stores the declaration of owner, in one transaction. If owner has declared a manifest before and leaves it out
// now, the manifest becomes an orphan: it no longer fires, keeps its due time, and is restored when it is declared
// again; after Options.Retention it is deleted. Sync never changes the manifests of other owners: it returns ErrOwned
// if one has a declared name. The settings of operators stay: a pause, and the cap or priority of a group whose
// declaration has not changed. A manifest with a changed When begins anew; other changes keep the due time.
//
// An empty declaration changes nothing, so that a program that has lost its list does not stop everything. To remove
// the last manifest of an owner, use Remove.
//
// Sync is safe for concurrent use, also by several processes: the calls run one after another, the last one wins, and
// a call that changes nothing writes no manifest. While a Scheduler of this owner runs with a newer release, Sync
// with an older one neither changes nor orphans a manifest that the Scheduler's release declares, and the Scheduler
// restores its own manifests within Options.Reconcile.
func (s *Store) Sync(ctx context.Context, owner string, groups []Group, manifests []Manifest) (changes Changes,
	err error) {
	if len(groups)+len(manifests) == 0 {
		return Changes{}, nil
	}
	d, err := s.declare(owner, groups, manifests)
	if err == nil {
		changes, err = s.store(ctx, d)
	}
	if err != nil {
		return Changes{}, fmt.Errorf("declare manifests of %q: %w", owner, err)
	}
	return changes, nil
}

// store writes a declaration, subject to the rule of releases.
func (t tables) store(ctx context.Context, d declaration) (changes Changes, err error) {
	err = t.alone(ctx, func(tx pgx.Tx) (err error) {
		d := declaring{t, d, tx}
		if err := d.enter(ctx); err != nil {
			return err
		}
		if d.rivals, err = d.readRivals(ctx); err != nil {
			return err
		}
		if changes, err = d.apply(ctx); err != nil {
			return err
		}
		return t.audit.addDeclared(ctx, tx, audit.Change{Verb: "manifest.declare", Target: d.owner}, changes)
	})
	return changes, err
}

// digest is the same for all processes of a release, whatever the order of its manifests.
func (d declaration) digest() []byte {
	var lines []string
	for _, g := range d.groups {
		lines = append(lines, line(groupFile{g.Name, g}))
	}
	for _, r := range d.rows {
		lines = append(lines, line(r.file()))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return sum[:]
}

func line(of any) string {
	text, _ := json.Marshal(of) // marshalled before, or read from JSON, so it cannot fail
	return string(text)
}

// enter records the release, and the program that runs it, for the programs of other releases.
func (d declaring) enter(ctx context.Context) error {
	manifests, sums, groups := []string{}, []string{}, []string{}
	for _, r := range d.rows {
		sum := sha256.Sum256([]byte(line(r.file())))
		manifests, sums = append(manifests, r.name), append(sums, hex.EncodeToString(sum[:8]))
	}
	for _, g := range d.groups {
		groups = append(groups, g.Name)
	}
	var number int64
	err := d.tx.QueryRow(ctx, d.sql.Get("enter_release"), d.owner, d.digest(), manifests, sums, groups).Scan(&number)
	if err != nil {
		return fmt.Errorf("record the release: %w", err)
	}
	if d.by == nil {
		return nil
	}
	host, _ := os.Hostname() // "" if the host has no name
	var since *time.Time
	if !d.by.started.IsZero() {
		since = &d.by.started
	}
	started := time.Time{}
	err = d.tx.QueryRow(ctx, d.sql.Get("enter_program"), d.by.id, number, host, os.Getpid(), since,
		d.by.expires.Microseconds()).Scan(&started)
	if err != nil {
		return fmt.Errorf("record the program: %w", err)
	}
	d.by.started, d.by.release = started, number
	return nil
}

func (d declaring) readRivals(ctx context.Context) (r rivals, err error) {
	grace := time.Duration(0)
	if d.by != nil {
		grace = d.by.grace
	}
	rows, err := d.tx.Query(ctx, d.sql.Get("rivals"), d.owner, d.digest(), grace.Microseconds())
	if err != nil {
		return r, fmt.Errorf("read releases: %w", err)
	}
	r = rivals{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	decides, manifests, groups := false, []string{}, []string{}
	_, err = pgx.ForEachRow(rows, []any{&decides, &manifests, &groups}, func() error {
		for _, name := range manifests {
			r.kept[name], r.decided[name] = true, r.decided[name] || decides
		}
		for _, name := range groups {
			r.keptGroups[name], r.decidedGroups[name] = true, r.decidedGroups[name] || decides
		}
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("read releases: %w", err)
	}
	return r, nil
}

// Diff returns the changes that Sync would make if no other release of owner ran. It neither writes nor locks.
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

func (t tables) compareOnly(ctx context.Context, d declaration) (changes Changes, err error) {
	err = pgx.BeginTxFunc(ctx, t.pool, readOnly, func(tx pgx.Tx) error {
		todo, err := declaring{t, d, tx}.compare(ctx)
		changes = todo.changes
		return errors.Join(err, todo.faults)
	})
	if err != nil {
		return Changes{}, fmt.Errorf("compare manifests of %q: %w", d.owner, err)
	}
	return changes, nil
}

func (e encoder) declare(owner string, groups []Group, manifests []Manifest) (d declaration, err error) {
	if err := checkOwner(owner); err != nil {
		return declaration{}, err
	}
	d = declaration{owner: owner, prune: len(manifests) > 0}
	var groupErr error
	d.groups, groupErr = groupRows(groups)
	if d.rows, err = e.rows(manifests); err != nil || groupErr != nil {
		return declaration{}, some(slices.DeleteFunc([]error{groupErr, err}, func(e error) bool { return e == nil }))
	}
	return d, nil
}

// declaring is a declaration in the transaction that compares or applies it.
type declaring struct {
	tables
	declaration
	tx pgx.Tx
}

// apply makes the changes. The transaction holds the lock of changes.
func (d declaring) apply(ctx context.Context) (Changes, error) {
	todo, err := d.compare(ctx)
	if err != nil {
		return Changes{}, err
	}
	if d.by != nil && d.by.runs {
		d.by.faults = todo.faults // a running program keeps all its manifests without a fault
	} else if todo.faults != nil {
		return Changes{}, todo.faults
	}
	if todo.changes.None() {
		return todo.changes, nil
	}
	if err := d.writeGroups(ctx, todo); err != nil {
		return Changes{}, err
	}
	if err := d.writeManifests(ctx, todo); err != nil {
		return Changes{}, err
	}
	return todo.changes, d.wake(ctx, d.tx, toEvaluate)
}

func (d declaring) writeGroups(ctx context.Context, todo comparison) error {
	if len(todo.newGroups) > 0 {
		if _, err := d.tx.Exec(ctx, d.sql.Get("insert_groups"), groupColumns(d.owner, todo.newGroups)...); err != nil {
			return fmt.Errorf("create groups: %w", err)
		}
	}
	if len(todo.oldGroups) > 0 {
		if _, err := d.tx.Exec(ctx, d.sql.Get("update_groups"), groupColumns(d.owner, todo.oldGroups)...); err != nil {
			return fmt.Errorf("change groups: %w", err)
		}
	}
	if len(todo.adopted) > 0 {
		if _, err := d.tx.Exec(ctx, d.sql.Get("adopt_groups"), d.owner, todo.adopted); err != nil {
			return fmt.Errorf("take over groups: %w", err)
		}
	}
	if left := todo.changes.Groups.Orphaned; len(left) > 0 {
		if _, err := d.tx.Exec(ctx, d.sql.Get("disown_groups"), left); err != nil {
			return fmt.Errorf("release groups: %w", err)
		}
	}
	return nil
}

func (d declaring) writeManifests(ctx context.Context, todo comparison) error {
	now, err := d.now(ctx, d.tx)
	if err != nil {
		return err
	}
	if _, err := d.tx.Exec(ctx, d.sql.Get("lock_manifests"), todo.ids, todo.changes.Created); err != nil {
		return fmt.Errorf("lock manifests: %w", err)
	}
	if len(todo.orphans) > 0 {
		if err := d.orphan(ctx, d.tx, todo.orphans, false); err != nil {
			return err
		}
	}
	if len(todo.update) > 0 {
		if _, err := d.tx.Exec(ctx, d.sql.Get("update_manifests"),
			columnsOf(d.owner, now, todo.update)...); err != nil {
			return fmt.Errorf("change manifests: %w", err)
		}
	}
	if len(todo.insert) == 0 {
		return nil
	}
	if _, err := d.tx.Exec(ctx, d.sql.Get("answer_anew"), todo.changes.Created); err != nil {
		return fmt.Errorf("reset the manifests that follow: %w", err)
	}
	if _, err := d.tx.Exec(ctx, d.sql.Get("insert_manifests"), columnsOf(d.owner, now, todo.insert)...); err != nil {
		return fmt.Errorf("create manifests: %w", err)
	}
	return nil
}

// toWrite is a row, and whether its schedule begins anew, at the earliest at from.
type toWrite struct {
	row
	afresh bool
	from   time.Time
}

// columnsOf returns the arguments of insert_manifests and update_manifests, so that many manifests need one statement.
func columnsOf(owner string, now time.Time, rows []toWrite) []any {
	n := len(rows)
	var (
		names, definitions, parents, groups, kinds = make([]string, n), make([]string, n), make([]string, n),
			make([]string, n), make([]string, n)
		follows, overlaps, stopped, afresh = make([]bool, n), make([]bool, n), make([]bool, n), make([]bool, n)
		priorities, retries                = make([]int32, n), make([]int32, n)
		delays, mosts, timeouts            = make([]int64, n), make([]int64, n), make([]int64, n)
		bodies                             = make([][]byte, n)
		dues                               = make([]*time.Time, n)
	)
	for i, r := range rows {
		names[i], definitions[i], parents[i], groups[i], kinds[i] = r.name, string(r.text), r.parent, r.group, r.kind
		follows[i], overlaps[i], stopped[i], afresh[i] = r.follows, r.overlap, r.stopped, r.afresh
		priorities[i], retries[i] = int32(r.priority), int32(r.retries)
		delays[i], mosts[i], timeouts[i] = r.retryDelay.Microseconds(), r.retryMost.Microseconds(),
			r.timeout.Microseconds()
		bodies[i] = r.body
		if due := r.plan.First(latest(now, r.from)); r.afresh && !due.IsZero() {
			dues[i] = &due
		}
	}
	return []any{owner, names, definitions, parents, follows, groups, priorities, overlaps, retries, delays, mosts,
		timeouts, kinds, bodies,
		stopped, dues, afresh}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// groupColumns returns the arguments of insert_groups and update_groups.
func groupColumns(owner string, groups []groupRow) []any {
	n := len(groups)
	names, declared := make([]string, n), make([]string, n)
	mosts, priorities, strict := make([]int32, n), make([]int32, n), make([]bool, n)
	for i, g := range groups {
		names[i], declared[i], strict[i] = g.Name, g.text(), g.Strict
		mosts[i], priorities[i] = int32(g.Max), int32(g.Priority)
	}
	return []any{owner, names, mosts, strict, priorities, declared}
}
