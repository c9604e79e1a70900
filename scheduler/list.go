package scheduler

import (
	"context"
	"errors"
	"time"

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
