package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

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
		err = row.Scan(&g.Name, &g.Owner, &g.Max, &g.Strict, &g.Priority, &paused, &g.Reason, &g.Manifests, &g.Queued,
			&g.Active)
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
	if err := s.pool.QueryRow(ctx, s.sql.Get("count_runs"), CountLimit).Scan(&c.Waiting, &c.Queued, &c.Active,
		&c.Dead); err != nil {
		return c, fmt.Errorf("count runs: %w", err)
	}
	return c, nil
}
