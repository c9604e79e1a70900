package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

const (
	// MaxCount is the maximum of each count of RunCounts and of Depth: at this value the real number may be larger.
	MaxCount = 100_000
	// MaxLimit is the maximum number of manifests or runs on a page.
	MaxLimit = 1000

	standardListed = 100
	mostAttempts   = 1000
	groupCount     = 10_000
)

func (t tables) manifestID(ctx context.Context, db queryer, name string) (id int64, err error) {
	err = db.QueryRow(ctx, t.sql.Get("manifest_id"), pg.Planned, name).Scan(&id)
	return id, instead(err, ErrNoManifest)
}

func (t tables) groupID(ctx context.Context, name string) (id int64, err error) {
	err = t.pool.QueryRow(ctx, t.sql.Get("group_id"), pg.Planned, name).Scan(&id)
	return id, instead(err, ErrNoGroup)
}

// instead returns sentinel if err is pgx.ErrNoRows, else err.
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

// GroupInfo describes a stored group. Each count ends at 10,000.
type GroupInfo struct {
	Group
	Owner     string // "" if it was made at run time, or is no longer declared
	Paused    time.Time
	Reason    string
	PausedBy  string // as in PauseInfo.By
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

// GroupOf returns one group. It returns ErrNoGroup if the group does not exist.
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

func (t tables) listGroups(ctx context.Context, name string) ([]GroupInfo, error) {
	rows, err := t.pool.Query(ctx, t.sql.Get("list_groups"), pg.Planned, name, groupCount)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g GroupInfo, err error) {
		var paused *time.Time
		err = row.Scan(&g.Name, &g.Owner, &g.Max, &g.Strict, &g.Priority, &paused, &g.Reason, &g.PausedBy, &g.Manifests,
			&g.Queued,
			&g.Active)
		if paused != nil {
			g.Paused = *paused
		}
		return g, err
	})
}

// RunCounts counts runs that have not ended. Each count ends at MaxCount.
type RunCounts struct{ Waiting, Queued, Active, Dead int }

// Counts counts the runs that have not ended.
func (s *Store) Counts(ctx context.Context) (c RunCounts, err error) {
	if err := s.pool.QueryRow(ctx, s.sql.Get("count_runs"), pg.Planned, MaxCount).Scan(&c.Waiting, &c.Queued,
		&c.Active, &c.Dead); err != nil {
		return c, fmt.Errorf("count runs: %w", err)
	}
	return c, nil
}
