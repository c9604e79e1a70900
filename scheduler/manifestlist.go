package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ManifestState says in a word whether a manifest fires.
type ManifestState string

// The states, the first that fits.
const (
	ManifestOrphan ManifestState = "orphan" // nobody declares it any more
	ManifestHeld   ManifestState = "held"   // a dead run waits for somebody to act
	ManifestPaused ManifestState = "paused" // by its declaration, by an operator, or with its group
	ManifestLive   ManifestState = "live"
)

// ManifestInfo is how a manifest stands, by the database's clock. Moments that are not there are zero.
type ManifestInfo struct {
	Name, Owner string
	Version     int64  // grows with each change of the declaration
	Schedule    string // its When, in words
	Parent      string // of After and Dormant
	NoParent    bool   // there is no manifest of that name any more
	ParentFired time.Time
	Definition  []byte // JSON, as it is stored
	Group       string
	GroupMax    int // 0 is no cap
	GroupActive int // runs, counted up to the cap
	GroupPaused time.Time
	GroupReason string
	Priority    int
	Overlap     bool
	Retries     int
	RetryDelay  time.Duration
	RetryMost   time.Duration
	Timeout     time.Duration // 0 is none
	Kind        string
	Body        []byte // of Manifest alone
	Stopped     bool   // by its declaration
	Paused      time.Time
	Reason      string // of the pause
	Orphaned    time.Time
	Live        bool
	State       ManifestState
	Due         time.Time // its next firing, in its zone
	Run         saga.ID   // the scheduled run that is open
	RunState    RunState
	RunReady    time.Time
	Held        saga.ID // the dead run
	HeldError   string
	Successes   int64
	Fired       time.Time // when its last scheduled run was queued
	Succeeded   time.Time
	Created     time.Time
	Changed     time.Time
	Now         time.Time // the database's clock when it was read
	rule        plan.Rule
	misread     string // what is wrong with the definition
}

// ManifestFilter chooses manifests. The zero value is all.
type ManifestFilter struct {
	Prefix string // of names
	Owner  string
	Group  string
	State  ManifestState
	After  string // go on behind this name
	Limit  int    // 0 is 100, at most MostListed
}

func (f ManifestFilter) check() error {
	switch {
	case f.Limit < 0 || f.Limit > MostListed:
		return fmt.Errorf("Limit: %d: want 0 to %d", f.Limit, MostListed)
	case f.State != "" && !slices.Contains([]ManifestState{ManifestOrphan, ManifestHeld, ManifestPaused, ManifestLive},
		f.State):
		return fmt.Errorf("State: %.40q: want orphan, held, paused or live", f.State)
	}
	return nil
}

// Manifests returns a page of manifests in the order of their names. It locks nothing.
func (s *Store) Manifests(ctx context.Context, f ManifestFilter) ([]ManifestInfo, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	list, err := s.listManifests(ctx, max(f.Prefix, f.After), f, false)
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	return list, nil
}

// Manifest returns one manifest with its message. ErrNoManifest when there is none.
func (s *Store) Manifest(ctx context.Context, name string) (ManifestInfo, error) {
	list, err := s.listManifests(ctx, name, ManifestFilter{Prefix: name, Limit: 1}, true)
	if err == nil && (len(list) == 0 || name == "" || list[0].Name != name) {
		err = ErrNoManifest
	}
	if err != nil {
		return ManifestInfo{}, fmt.Errorf("read manifest %.140q: %w", name, err)
	}
	return list[0], nil
}

func (s *Store) listManifests(ctx context.Context, from string, f ManifestFilter, body bool) ([]ManifestInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.Get("list_manifests"), pg.Planned, from, f.After, f.Prefix, f.Owner, f.Group,
		string(f.State), body,
		cmp.Or(f.Limit, standardListed))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanManifest)
}

func scanManifest(row pgx.CollectableRow) (m ManifestInfo, err error) {
	var (
		text                 string
		delay, most, timeout int64
		run, held            *saga.ID
		at                   [8]*time.Time
	)
	err = row.Scan(&m.Name, &m.Owner, &m.Version, &text, &m.NoParent, &at[0], &m.Group, &m.GroupMax, &at[1],
		&m.GroupReason, &m.GroupActive,
		&m.Priority, &m.Overlap, &m.Retries, &delay, &most, &timeout, &m.Kind, &m.Body,
		&m.Stopped, &at[2], &m.Reason, &at[3], &m.Live, &m.State, &at[4], &run, &m.RunState, &at[5], &held,
		&m.HeldError,
		&m.Successes, &at[6], &at[7], &m.Created, &m.Changed, &m.Now)
	if err != nil {
		return m, err
	}
	for n, into := range []*time.Time{&m.ParentFired, &m.GroupPaused, &m.Paused, &m.Orphaned, &m.Due, &m.RunReady,
		&m.Fired, &m.Succeeded} {
		if at[n] != nil {
			*into = *at[n]
		}
	}
	if run != nil {
		m.Run = *run
	}
	if held != nil {
		m.Held = *held
	}
	m.RetryDelay, m.RetryMost, m.Timeout = microseconds(delay), microseconds(most), microseconds(timeout)
	m.define(text)
	return m, nil
}

// define reads the definition. One of another release is shown as far as it can be read.
func (m *ManifestInfo) define(text string) {
	d, known := plan.Read([]byte(text))
	m.Definition, m.rule, m.Parent, m.Schedule = []byte(text), d.Rule, d.Rule.Parent, d.Rule.String()
	p, err := d.Compile()
	switch {
	case err != nil:
		m.misread = err.Error()
	case !known:
		m.misread = "it has fields that this release does not know"
	}
	if err == nil && !m.Due.IsZero() {
		m.Due = m.Due.In(p.Zone())
	}
}
