package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const (
	// CountLimit is where counts end: a number that has reached it may be larger.
	CountLimit = 100_000
	// MostListed is how many manifests or runs a page has at most.
	MostListed = 1000

	standardListed = 100
	mostAttempts   = 1000
	groupCount     = 10_000
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
	Name, Owner   string
	Version       int64  // grows with each change of the declaration
	Schedule      string // its When, in words
	Parent        string // of After and Dormant
	NoParent      bool   // there is no manifest of that name any more
	ParentFired   time.Time
	Definition    []byte // JSON, as it is stored
	Group         string
	GroupMax      int // 0 is no cap
	GroupActive   int // runs, counted up to the cap
	GroupPaused   time.Time
	GroupReason   string
	Priority      int
	Overlap       bool
	Retries       int
	RetryDelay    time.Duration
	RetryMost     time.Duration
	Timeout       time.Duration // 0 is none
	Kind          string
	Body          []byte // of Manifest alone
	Stopped       bool   // by its declaration
	Paused        time.Time
	Reason        string // of the pause
	Orphaned      time.Time
	Live          bool
	State         ManifestState
	Due           time.Time // its next firing, in its zone
	Run           saga.ID   // the scheduled run that is open
	RunState      RunState
	RunReady      time.Time
	Held          saga.ID // the dead run
	HeldError     string
	Successes     int64
	Fired         time.Time // when its last scheduled run was queued
	Succeeded     time.Time
	Created       time.Time
	Changed       time.Time
	Now           time.Time // the database's clock when it was read
	rule          rule
	misread       string // what is wrong with the definition
	misfirePolicy Misfire
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
	case f.State != "" && !slices.Contains([]ManifestState{ManifestOrphan, ManifestHeld, ManifestPaused, ManifestLive}, f.State):
		return fmt.Errorf("State: %.40q: want orphan, held, paused or live", f.State)
	}
	return nil
}

// planned has a statement planned for its arguments each time: what a filter leaves out decides which index serves it.
const planned = pgx.QueryExecModeCacheDescribe

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
	rows, err := s.pool.Query(ctx, s.sql.Get("list_manifests"), planned, from, f.After, f.Prefix, f.Owner, f.Group, string(f.State), body,
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
	err = row.Scan(&m.Name, &m.Owner, &m.Version, &text, &m.NoParent, &at[0], &m.Group, &m.GroupMax, &at[1], &m.GroupReason, &m.GroupActive,
		&m.Priority, &m.Overlap, &m.Retries, &delay, &most, &timeout, &m.Kind, &m.Body,
		&m.Stopped, &at[2], &m.Reason, &at[3], &m.Live, &m.State, &at[4], &run, &m.RunState, &at[5], &held, &m.HeldError,
		&m.Successes, &at[6], &at[7], &m.Created, &m.Changed, &m.Now)
	if err != nil {
		return m, err
	}
	for n, into := range []*time.Time{&m.ParentFired, &m.GroupPaused, &m.Paused, &m.Orphaned, &m.Due, &m.RunReady, &m.Fired, &m.Succeeded} {
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
	d, known := readDefinition(text)
	m.Definition, m.rule, m.misfirePolicy, m.Parent, m.Schedule = []byte(text), d.Rule, d.Misfire, d.Rule.Parent, d.Rule.String()
	p, err := d.compile()
	switch {
	case err != nil:
		m.misread = err.Error()
	case !known:
		m.misread = "it has fields that this release does not know"
	}
	if err == nil && !m.Due.IsZero() {
		m.Due = m.Due.In(p.zone())
	}
}

// RunInfo is how a run stands. Moments that are not there are zero.
type RunInfo struct {
	ID       saga.ID
	Manifest string
	Group    string
	Origin   string // schedule, dependent, manual, activation or backfill
	State    RunState
	Due      time.Time // the moment that the schedule meant
	Ready    time.Time // no dispatch before it
	Priority int
	Kind     string
	Body     []byte    // of RunOf alone
	Attempt  int       // messages that were sent for it
	Refused  int       // times in a row that its message could not be sent
	Message  saga.ID   // of the last attempt
	Deadline time.Time // of an active run
	Beat     time.Time // the last sign of life of its handler
	Queued   time.Time
	Ended    time.Time
	Error    string // of the last attempt
	Note     string // of whoever cancelled or retried it
	Attempts []Attempt
}

// Attempt is one message that was sent for a run.
type Attempt struct {
	Attempt int
	Message saga.ID
	Sent    time.Time
	Began   time.Time // of a handler that gives signs of life
	Worker  string
	Ended   time.Time
	Outcome string // succeeded, failed, discarded, cancelled, timed_out or lost; "" while it is open
	Error   string
}

// RunFilter chooses runs. The zero value is all.
type RunFilter struct {
	Manifest     string
	Group        string // the group that the manifest was in when the run was queued
	State        RunState
	Since, Until time.Time // queued from the first on, and before the second
	After        saga.ID   // go on behind this run, with older ones
	Limit        int       // 0 is 100, at most MostListed
}

func (f RunFilter) check() error {
	states := []RunState{"", RunWaiting, RunQueued, RunActive, RunDead, RunSucceeded, RunCancelled, RunTimedOut}
	switch {
	case f.Limit < 0 || f.Limit > MostListed:
		return fmt.Errorf("Limit: %d: want 0 to %d", f.Limit, MostListed)
	case !slices.Contains(states, f.State):
		return fmt.Errorf("State: %.40q: want waiting, queued, active, dead, succeeded, cancelled or timed_out", f.State)
	}
	return nil
}

// Runs returns a page of runs, the newest first. It locks nothing. ErrNoManifest and ErrNoGroup for names that are not there.
func (s *Store) Runs(ctx context.Context, f RunFilter) ([]RunInfo, error) {
	list, err := s.runs(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return list, nil
}

func (s *Store) runs(ctx context.Context, f RunFilter) (_ []RunInfo, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	var manifest, group int64
	if f.Manifest != "" {
		if manifest, err = s.manifestID(ctx, s.pool, f.Manifest); err != nil {
			return nil, err
		}
	}
	if f.Group != "" {
		if group, err = s.groupID(ctx, f.Group); err != nil {
			return nil, err
		}
	}
	low, high := f.ids()
	return s.listRuns(ctx, low, high, manifest, group, string(f.State), nullable(f.Since), nullable(f.Until), false, cmp.Or(f.Limit, standardListed))
}

func (s *Store) manifestID(ctx context.Context, db queryer, name string) (id int64, err error) {
	err = db.QueryRow(ctx, s.sql.Get("manifest_id"), name).Scan(&id)
	return id, instead(err, ErrNoManifest)
}

func (s *Store) groupID(ctx context.Context, name string) (id int64, err error) {
	err = s.pool.QueryRow(ctx, s.sql.Get("group_id"), name).Scan(&id)
	return id, instead(err, ErrNoGroup)
}

// instead is err, or the sentinel for a row that is not there.
func instead(err, sentinel error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sentinel
	}
	return err
}

func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// clockSlack is by how much the clocks of those who made the ids of runs may differ from the database's.
const clockSlack = 24 * time.Hour

// ids bound the pages of the index that are read, since an id begins with the time at which it was made.
func (f RunFilter) ids() (low, high saga.ID) {
	for n := range high {
		high[n] = 0xff
	}
	if !f.Since.IsZero() {
		low = idAt(f.Since.Add(-clockSlack))
	}
	if !f.Until.IsZero() {
		high = idAt(f.Until.Add(clockSlack))
	}
	if !f.After.IsZero() && slices.Compare(f.After[:], high[:]) <= 0 {
		high = before(f.After)
	}
	return low, high
}

// idAt is the lowest UUIDv7 of a moment.
func idAt(t time.Time) (id saga.ID) {
	for n, ms := 5, t.UnixMilli(); n >= 0; n, ms = n-1, ms>>8 {
		id[n] = byte(ms)
	}
	return id
}

func before(id saga.ID) saga.ID {
	for n := len(id) - 1; n >= 0; n-- {
		id[n]--
		if id[n] != 0xff {
			break
		}
	}
	return id
}

func (s *Store) listRuns(ctx context.Context, args ...any) ([]RunInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.Get("list_runs"), append([]any{planned}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

func scanRun(row pgx.CollectableRow) (r RunInfo, err error) {
	var message *saga.ID
	var deadline, beat, ended *time.Time
	err = row.Scan(&r.ID, &r.Manifest, &r.Group, &r.Origin, &r.State, &r.Due, &r.Ready, &r.Priority, &r.Kind, &r.Body, &r.Attempt, &r.Refused,
		&message, &deadline, &beat, &r.Queued, &ended, &r.Error, &r.Note)
	if message != nil {
		r.Message = *message
	}
	for _, at := range []struct{ from, into *time.Time }{{deadline, &r.Deadline}, {beat, &r.Beat}, {ended, &r.Ended}} {
		if at.from != nil {
			*at.into = *at.from
		}
	}
	return r, err
}

// RunOf returns one run with its message and its last attempts, the newest first. ErrNoRun when there is none.
func (s *Store) RunOf(ctx context.Context, id saga.ID) (RunInfo, error) {
	list, err := s.listRuns(ctx, id, id, 0, 0, "", nil, nil, true, 1)
	if err == nil && len(list) == 0 {
		err = ErrNoRun
	}
	if err == nil {
		list[0].Attempts, err = s.attempts(ctx, id)
	}
	if err != nil {
		return RunInfo{}, fmt.Errorf("read run %s: %w", id, err)
	}
	return list[0], nil
}

func (s *Store) attempts(ctx context.Context, run saga.ID) ([]Attempt, error) {
	rows, err := s.pool.Query(ctx, s.sql.Get("attempts"), run, mostAttempts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
		var began, ended *time.Time
		err = row.Scan(&a.Attempt, &a.Message, &a.Sent, &began, &a.Worker, &ended, &a.Outcome, &a.Error)
		if began != nil {
			a.Began = *began
		}
		if ended != nil {
			a.Ended = *ended
		}
		return a, err
	})
}

// GroupInfo is how a group stands. Counts end at 10,000.
type GroupInfo struct {
	Group
	Owner     string // "" is nobody: made at run time, or declared no longer
	Paused    time.Time
	Reason    string
	Manifests int
	Queued    int // runs
	Active    int
}

// Groups returns all groups in the order of their names.
func (s *Store) Groups(ctx context.Context) ([]GroupInfo, error) {
	list, err := s.listGroups(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	return list, nil
}

// GroupOf returns one group. ErrNoGroup when there is none.
func (s *Store) GroupOf(ctx context.Context, name string) (GroupInfo, error) {
	list, err := s.listGroups(ctx, name)
	if err == nil && (len(list) == 0 || name == "") {
		err = ErrNoGroup
	}
	if err != nil {
		return GroupInfo{}, fmt.Errorf("read group %.140q: %w", name, err)
	}
	return list[0], nil
}

func (s *Store) listGroups(ctx context.Context, name string) ([]GroupInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.Get("list_groups"), name, groupCount)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g GroupInfo, err error) {
		var paused *time.Time
		err = row.Scan(&g.Name, &g.Owner, &g.Max, &g.Strict, &g.Priority, &paused, &g.Reason, &g.Manifests, &g.Queued, &g.Active)
		if paused != nil {
			g.Paused = *paused
		}
		return g, err
	})
}

// RunCounts are runs that have not ended, each count up to CountLimit.
type RunCounts struct{ Waiting, Queued, Active, Dead int }

// Counts counts the runs that have not ended.
func (s *Store) Counts(ctx context.Context) (c RunCounts, err error) {
	if err := s.pool.QueryRow(ctx, s.sql.Get("count_runs"), CountLimit).Scan(&c.Waiting, &c.Queued, &c.Active, &c.Dead); err != nil {
		return c, fmt.Errorf("count runs: %w", err)
	}
	return c, nil
}
