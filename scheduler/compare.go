package scheduler

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/jackc/pgx/v5"
)

// comparison has the changes that a declaration makes, and the rows to write.
type comparison struct {
	changes              Changes
	newGroups, oldGroups []groupRow
	adopted              []string // groups without an owner that are declared as before
	insert, update       []toWrite
	orphans              []int64
	ids                  []int64 // of all manifests that change
	faults               error   // found by comparing the declaration with the stored manifests
}

// standing is a manifest as the table has it, with a digest of its message.
type standing struct {
	id       int64
	owner    string
	row      row
	sum      []byte
	orphaned bool
	removed  *time.Time // by an operator
	due      *time.Time
	known    bool // this program can read its definition
}

type storedGroup struct {
	groupRow
	owner    string
	declared *string
}

// compare reads the stored manifests and groups of a declaration, and returns the changes that are needed.
func (d declaring) compare(ctx context.Context) (comparison, error) {
	todo := comparison{}
	groups, err := d.storedGroups(ctx)
	if err != nil {
		return todo, err
	}
	manifests, err := d.storedManifests(ctx)
	if err != nil {
		return todo, err
	}
	faults := append(todo.addGroups(d.declaration, groups), todo.addManifests(d.declaration, manifests)...)
	fault, err := d.parentsFit(ctx, todo.changes.Orphaned)
	if err != nil {
		return todo, err
	}
	if fault != nil {
		faults = append(faults, fault)
	}
	todo.changes.sort()
	todo.faults = some(faults)
	return todo, nil
}

// storedGroups returns the groups of the declaration, the groups that its manifests name, and the groups of its owner.
func (d declaring) storedGroups(ctx context.Context) (map[string]storedGroup, error) {
	var names []string
	for _, g := range d.groups {
		names = append(names, g.Name)
	}
	for _, r := range d.rows {
		if r.group != "" {
			names = append(names, r.group)
		}
	}
	slices.Sort(names)
	rows, err := d.tx.Query(ctx, d.sql.Get("stored_groups"), slices.Compact(names), d.owner)
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	found, g := map[string]storedGroup{}, storedGroup{}
	_, err = pgx.ForEachRow(rows, []any{&g.Name, &g.owner, &g.Max, &g.Strict, &g.Priority, &g.declared}, func() error {
		found[g.Name] = g
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	return found, nil
}

func (g groupRow) text() string {
	text, _ := json.Marshal(g) // of numbers and a boolean
	return string(text)
}

// restates reports whether a group is declared as before, even if an operator has changed it since then.
func (g groupRow) restates(declared *string) bool {
	before := groupRow{}
	return declared != nil && json.Unmarshal([]byte(*declared), &before) == nil && before.text() == g.text()
}

func (c *comparison) addGroups(d declaration, found map[string]storedGroup) (faults []error) {
	declared := map[string]bool{}
	for _, g := range d.groups {
		declared[g.Name] = true
		was, there := found[g.Name]
		switch {
		case d.rivals.decidedGroups[g.Name]:
			c.changes.Groups.Unchanged = append(c.changes.Groups.Unchanged, g.Name)
		case !there:
			c.newGroups, c.changes.Groups.Created = append(c.newGroups, g), append(c.changes.Groups.Created, g.Name)
		case was.owner != "" && was.owner != d.owner:
			faults = append(faults, ownedError("group", g.Name, was.owner, d.owner))
		case g.restates(was.declared) && was.owner == d.owner:
			c.changes.Groups.Unchanged = append(c.changes.Groups.Unchanged, g.Name)
		case g.restates(was.declared):
			c.adopted = append(c.adopted, g.Name)
			c.changes.Groups.Changed = append(c.changes.Groups.Changed, Change{g.Name, []string{"owner"}})
		default:
			c.oldGroups = append(c.oldGroups, g)
			c.changes.Groups.Changed = append(c.changes.Groups.Changed, Change{g.Name, was.differs(g, d.owner)})
		}
	}
	for name, g := range found {
		if d.prune && g.owner == d.owner && d.owner != "" && !declared[name] && !d.rivals.keptGroups[name] {
			c.changes.Groups.Orphaned = append(c.changes.Groups.Orphaned, name)
		}
	}
	for _, r := range d.rows {
		if _, there := found[r.group]; r.group != "" && !there && !declared[r.group] {
			faults = append(faults, fmt.Errorf("manifest %q: Group: %q is neither declared nor stored", r.name,
				r.group))
		}
	}
	return faults
}

func (g storedGroup) differs(now groupRow, owner string) (what []string) {
	for name, differs := range map[string]bool{"Max": g.Max != now.Max, "Strict": g.Strict != now.Strict,
		"Priority": g.Priority != now.Priority, "owner": g.owner != owner} {
		if differs {
			what = append(what, name)
		}
	}
	slices.Sort(what)
	return what
}

func ownedError(what, name, owner, by string) error {
	if owner == "" {
		return fmt.Errorf("%s %q was made at run time, and %q declares it too: choose a different name, or remove it "+
			"first: %w", what, name, by, ErrOwned)
	}
	return fmt.Errorf("%s %q is declared by %q, and %q declares it too: choose a different name, or remove it "+
		"there first: %w", what, name, owner, by, ErrOwned)
}

func (d declaring) storedManifests(ctx context.Context) (map[string]standing, error) {
	names := make([]string, 0, len(d.rows))
	for _, r := range d.rows {
		names = append(names, r.name)
	}
	rows, err := d.tx.Query(ctx, d.sql.Get("stored_manifests"), names, d.owner, d.prune)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	found := make(map[string]standing, len(names))
	list, err := pgx.CollectRows(rows, scanStored)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	for _, m := range list {
		found[m.row.name] = m
	}
	return found, nil
}

func scanStored(rows pgx.CollectableRow) (m standing, err error) {
	var text string
	var delay, most, timeout int64
	err = rows.Scan(&m.id, &m.row.name, &m.owner, &text, &m.row.parent, &m.row.follows, &m.row.group, &m.row.priority,
		&m.row.overlap, &m.row.retries, &delay, &most, &timeout, &m.row.kind, &m.sum, &m.row.stopped, &m.orphaned,
		&m.removed, &m.due)
	m.row.retryDelay, m.row.retryMost, m.row.timeout = microseconds(delay), microseconds(most), microseconds(timeout)
	m.row.definition, m.known = plan.Read([]byte(text))
	return m, err
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (c *comparison) addManifests(d declaration, found map[string]standing) (faults []error) {
	declared := make(map[string]bool, len(d.rows))
	for _, r := range d.rows {
		declared[r.name] = true
		was, there := found[r.name]
		if d.rivals.decided[r.name] || there && d.by.began(was.removed) {
			c.changes.Unchanged = append(c.changes.Unchanged, r.name)
			continue
		}
		if !there {
			c.insert = append(c.insert, toWrite{row: r, afresh: true})
			c.changes.Created = append(c.changes.Created, r.name)
			continue
		}
		if was.owner != d.owner && !was.orphaned {
			faults = append(faults, ownedError("manifest", r.name, was.owner, d.owner))
			continue
		}
		what := was.differs(r, d.owner)
		if len(what) == 0 {
			c.changes.Unchanged = append(c.changes.Unchanged, r.name)
			continue
		}
		c.update, c.ids = append(c.update, toWrite{r, was.begins(r), was.rhythm(r)}), append(c.ids, was.id)
		c.changes.Changed = append(c.changes.Changed, Change{r.name, what})
	}
	for name, was := range found {
		if d.prune && was.owner == d.owner && !was.orphaned && !declared[name] && !d.rivals.kept[name] {
			c.orphans, c.ids = append(c.orphans, was.id), append(c.ids, was.id)
			c.changes.Orphaned = append(c.changes.Orphaned, name)
		}
	}
	return faults
}

// began reports whether the program has been running since before the given time.
func (p *program) began(before *time.Time) bool {
	return p != nil && before != nil && !p.started.IsZero() && p.started.Before(*before)
}

// differs returns the names of the fields that differ between a declaration and the stored manifest.
func (m standing) differs(r row, owner string) (what []string) {
	sum := sha256.Sum256(r.body)
	rest, restNow := m.row.definition, r.definition
	rest.Rule, restNow.Rule = plan.Rule{}, plan.Rule{}
	for _, field := range []struct {
		name    string
		differs bool
	}{
		{"owner", m.owner != owner},
		{"orphan", m.orphaned},
		{"When", !sameRule(m.row.definition.Rule, r.definition.Rule)},
		{"definition", !m.known || !sameText(rest, restNow)},
		{"Group", m.row.group != r.group},
		{"Message", m.row.kind != r.kind || !bytes.Equal(m.sum, sum[:])},
		{"Priority", m.row.priority != r.priority},
		{"Overlap", m.row.overlap != r.overlap},
		{"Timeout", m.row.timeout != r.timeout.Truncate(time.Microsecond)},
		{"Retries", m.row.retries != r.retries},
		{"RetryDelay", m.row.retryDelay != r.retryDelay.Truncate(time.Microsecond)},
		{"MaxRetryDelay", m.row.retryMost != r.retryMost.Truncate(time.Microsecond)},
		{"Paused", m.row.stopped != r.stopped},
	} {
		if field.differs {
			what = append(what, field.name)
		}
	}
	return what
}

// begins reports whether the schedule begins anew: its rule is different, or it had ended and may continue.
func (m standing) begins(r row) bool {
	if !sameRule(m.row.definition.Rule, r.definition.Rule) {
		return true
	}
	over := m.due == nil && (r.definition.Rule.Kind == plan.Cron || r.definition.Rule.Kind == plan.Every)
	return over && !sameText(m.row.definition, r.definition)
}

// rhythm returns the due time after a change of the interval: the new interval after the due time that fired last.
// Without this rule, each rollback and each new rollout of a release would fire at once.
func (m standing) rhythm(r row) time.Time {
	if m.due == nil || m.row.definition.Rule.Kind != plan.Every || r.definition.Rule.Kind != plan.Every {
		return time.Time{}
	}
	return m.due.Add(r.definition.Rule.Every - m.row.definition.Rule.Every)
}

func sameRule(a, b plan.Rule) bool {
	return a.At.Equal(b.At) && sameText(withoutTime(a), withoutTime(b))
}

func withoutTime(r plan.Rule) plan.Rule {
	r.At = time.Time{}
	return r
}

// sameText compares two definitions by the text that is stored of them.
func sameText(a, b any) bool {
	one, err := json.Marshal(a)
	two, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && bytes.Equal(one, two)
}

// parentsFit checks the parents that the declaration does not contain, and the manifests that these parents follow.
func (d declaring) parentsFit(ctx context.Context, orphaned []string) (fault, err error) {
	var outside []string
	for _, r := range d.rows {
		if r.parent != "" {
			outside = append(outside, r.parent)
		}
	}
	if outside == nil {
		return nil, nil
	}
	rows, err := d.tx.Query(ctx, d.sql.Get("ancestors"), outside)
	if err != nil {
		return nil, fmt.Errorf("read parents: %w", err)
	}
	parents, name, parent := map[string]string{}, "", ""
	if _, err := pgx.ForEachRow(rows, []any{&name, &parent}, func() error {
		parents[name] = parent
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read parents: %w", err)
	}
	orphans := map[string]bool{}
	for _, name := range orphaned {
		orphans[name] = true
	}
	return checkParents(d.rows, parents, orphans), nil
}

func (c *Changes) sort() {
	byName := func(a, b Change) int { return cmp.Compare(a.Name, b.Name) }
	for _, names := range [][]string{c.Created, c.Orphaned, c.Unchanged, c.Groups.Created, c.Groups.Orphaned,
		c.Groups.Unchanged} {
		slices.Sort(names)
	}
	slices.SortFunc(c.Changed, byName)
	slices.SortFunc(c.Groups.Changed, byName)
}
