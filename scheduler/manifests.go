package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// ManifestState is the first of the states below that applies to a manifest.
type ManifestState string

// The states, in the order of precedence.
const (
	ManifestOrphan ManifestState = "orphan" // no program declares it any more
	ManifestHeld   ManifestState = "held"   // a dead run waits for an operator
	ManifestPaused ManifestState = "paused" // by its declaration, by an operator, or with its group
	ManifestLive   ManifestState = "live"
)

// ManifestInfo describes a stored manifest, by the database's clock. Times that do not apply are zero.
type ManifestInfo struct {
	Name, Owner string
	Version     int64 // increases with each change of the declaration
	State       ManifestState
	Schedule    string // a description of its When
	Definition  []byte // JSON, as it is stored
	Kind        string
	Body        []byte // only set by Store.Manifest
	Priority    int
	Overlap     bool
	Attempts    AttemptsInfo
	Parent      ParentInfo // of After and Dormant
	Group       MembershipInfo
	Paused      PauseInfo
	Orphaned    time.Time
	Due         time.Time // the next due time, in the zone of the manifest
	Run         OpenRunInfo
	Held        HeldInfo
	History     ManifestHistory

	read definitionInfo
}

// AttemptsInfo is how often a run is tried, and for how long.
type AttemptsInfo struct {
	Retries                   int
	RetryDelay, MaxRetryDelay time.Duration
	Timeout                   time.Duration // 0 is no timeout
}

// ParentInfo describes the manifest that a manifest follows.
type ParentInfo struct {
	Name    string
	Missing bool // the parent does not exist any more
	Fired   time.Time
}

// MembershipInfo describes the group of a manifest.
type MembershipInfo struct {
	Name   string
	Max    int // 0 is no limit
	Active int // active runs, counted up to Max
	Paused time.Time
	Reason string
	By     string // as PauseInfo.By
}

// PauseInfo describes the pause of a manifest.
type PauseInfo struct {
	Declared bool      // its declaration has Paused
	Since    time.Time // when an operator paused it; zero if no operator has
	Reason   string    // given by the operator
	By       string    // the actor, or the database role if the change named no actor
}

// OpenRunInfo describes the open scheduled run; the zero value is no run.
type OpenRunInfo struct {
	ID    saga.ID
	State RunState
	Ready time.Time
}

// HeldInfo describes the dead run that holds a manifest; the zero value is no run.
type HeldInfo struct {
	ID    saga.ID
	Error string
}

// ManifestHistory is the past of a manifest.
type ManifestHistory struct {
	Successes        int64
	Fired            time.Time // when its last scheduled run was queued
	Succeeded        time.Time
	Created, Changed time.Time
	Now              time.Time // the database's clock when the manifest was read
}

// definitionInfo is the result of reading a definition: its rule, or why it cannot be read.
type definitionInfo struct {
	rule  plan.Rule
	fault string
}

// ManifestFilter selects manifests. The zero value selects all.
type ManifestFilter struct {
	Prefix string // of names
	Owner  string
	Group  string
	State  ManifestState
	After  string // continue after this name
	Limit  int    // 0 is 100, at most MaxLimit
}

func (f ManifestFilter) check() error {
	switch {
	case f.Limit < 0 || f.Limit > MaxLimit:
		return fmt.Errorf("Limit: %d: want 0 to %d", f.Limit, MaxLimit)
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

// Manifest returns one manifest with its message. It returns ErrNoManifest if the manifest does not exist.
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

func (t tables) listManifests(ctx context.Context, from string, f ManifestFilter, body bool) ([]ManifestInfo, error) {
	rows, err := t.pool.Query(ctx, t.sql.Get("list_manifests"), pg.Planned, from, f.After, f.Prefix, f.Owner, f.Group,
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
	err = row.Scan(&m.Name, &m.Owner, &m.Version, &text, &m.Parent.Missing, &at[0],
		&m.Group.Name, &m.Group.Max, &at[1], &m.Group.Reason, &m.Group.By, &m.Group.Active,
		&m.Priority, &m.Overlap, &m.Attempts.Retries, &delay, &most, &timeout, &m.Kind, &m.Body,
		&m.Paused.Declared, &at[2], &m.Paused.Reason, &m.Paused.By, &at[3], &m.State, &at[4],
		&run, &m.Run.State, &at[5], &held, &m.Held.Error,
		&m.History.Successes, &at[6], &at[7], &m.History.Created, &m.History.Changed, &m.History.Now)
	if err != nil {
		return m, err
	}
	for n, into := range []*time.Time{&m.Parent.Fired, &m.Group.Paused, &m.Paused.Since, &m.Orphaned, &m.Due,
		&m.Run.Ready,
		&m.History.Fired, &m.History.Succeeded} {
		if at[n] != nil {
			*into = *at[n]
		}
	}
	if run != nil {
		m.Run.ID = *run
	}
	if held != nil {
		m.Held.ID = *held
	}
	m.Attempts.RetryDelay, m.Attempts.MaxRetryDelay = microseconds(delay), microseconds(most)
	m.Attempts.Timeout = microseconds(timeout)
	m.define(text)
	return m, nil
}

// define reads the definition. If a different release wrote it, it is shown as far as this program can read it.
func (m *ManifestInfo) define(text string) {
	d, known := plan.Read([]byte(text))
	m.Definition, m.read.rule, m.Parent.Name, m.Schedule = []byte(text), d.Rule, d.Rule.Parent, d.Rule.String()
	p, err := d.Compile()
	switch {
	case err != nil:
		m.read.fault = err.Error()
	case !known:
		m.read.fault = "it has fields that this release does not have: deploy the newer program"
	}
	if err == nil && !m.Due.IsZero() {
		m.Due = m.Due.In(p.Zone())
	}
}
