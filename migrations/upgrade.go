package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/version"
)

const (
	patience   = time.Minute     // how long one migration is tried while other sessions hold its locks
	firstPause = 2 * time.Second // as long as the lock_timeout, so that other sessions have half of the time
	mostPause  = 10 * time.Second
)

// upgrade is one call of Up.
type upgrade struct {
	db         version.Querier
	schema     pg.Schema
	statements pg.Statements
	log        *slog.Logger
	applied    func(Migration)

	fresh   Migration // applied, but not reported yet; zero is no migration
	current file
	claimed bool      // this process is applying current, and no other one
	waited  bool      // a line about the wait has been logged
	since   time.Time // the first try of current that could not get its locks; zero if every try got them
	pause   time.Duration
}

// steps wraps each file into a goose migration in a transaction. It does not use goose's reader of SQL files, which
// splits a file at line ends and can misread the name of a schema.
func (u *upgrade) steps() []*goose.Migration {
	var steps []*goose.Migration
	for _, m := range all() {
		steps = append(steps, goose.NewGoMigration(m.Version,
			&goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error { return u.apply(ctx, tx, m) }}, nil))
	}
	return steps
}

func (u *upgrade) apply(ctx context.Context, tx *sql.Tx, m file) error {
	u.tell(nil) // goose begins a migration after the commit of the previous one
	if u.current.Version != m.Version {
		u.current, u.since, u.pause, u.waited = m, time.Time{}, firstPause, false
	}
	u.claimed = false
	for _, settings := range []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
		migrationSettings(u.statements)} {
		if _, err := tx.ExecContext(ctx, settings); err != nil {
			return err
		}
	}
	claimed, err := tx.ExecContext(ctx, u.statements.Get("claim"), m.Version, m.Name, m.Breaking)
	if err != nil {
		return fmt.Errorf("claim migration %d: %w", m.Version, err)
	}
	if rows, err := claimed.RowsAffected(); err != nil || rows == 0 {
		return err // 0 rows: another process has applied it
	}
	u.claimed = true
	if _, err := tx.ExecContext(ctx, u.schema.Render(m.Text)); err != nil {
		return fmt.Errorf("apply migration %d (%s): %w", m.Version, m.Name, err)
	}
	u.fresh = Migration{Version: m.Version, Name: m.Name, Breaking: m.Breaking, Applied: time.Now()}
	return nil
}

// tell reports the migration that was applied last, unless err means that its transaction has failed.
func (u *upgrade) tell(err error) {
	var partial *goose.PartialError
	failed := errors.As(err, &partial) && partial.Failed.Source.Version == u.fresh.Version
	if u.fresh.Version > 0 && !failed && u.applied != nil {
		u.applied(u.fresh)
	}
	u.fresh = Migration{}
}

// again reports whether Up should try again after err, and waits until then. The error that it returns names the
// session that holds the lock, if it is known.
func (u *upgrade) again(ctx context.Context, err error) (bool, error) {
	if pgerr.ClassOf(err) != pgerr.Busy {
		return false, err
	}
	if !u.claimed {
		if !u.waited {
			u.log.Info("edda: another process applies a migration", "schema", u.schema.Name(), "migration",
				u.current.Version, "name", u.current.Name)
		}
		u.waited = true
		return true, nil // the lock_timeout was the pause
	}
	if u.since.IsZero() {
		u.since = time.Now()
	}
	holder := u.holder(ctx)
	err = fmt.Errorf("%w: %s; end its transaction, or run the migration when it has ended", err, holder)
	if time.Since(u.since) > patience {
		return false, fmt.Errorf("no lock within %v: %w", patience, err)
	}
	u.log.Warn("edda: a migration waits for a lock", "schema", u.schema.Name(), "migration", u.current.Version,
		"name", u.current.Name, "holder", holder, "next_try_in", u.pause)
	select {
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case <-time.After(u.pause):
	}
	u.pause = min(2*u.pause, mostPause)
	return true, nil
}

// holder describes the oldest transaction that has a lock on a table of the schema; it is probably the one to wait for.
func (u *upgrade) holder(ctx context.Context) (text string) {
	err := u.db.QueryRow(ctx, u.statements.Get("holder")).Scan(&text)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "a session held a lock on its tables"
	case err != nil:
		return "a session holds a lock on its tables (" + err.Error() + ")"
	}
	return text
}
