package pg

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed pooler.sql
var poolerStatements string

// probeChannel is a channel without listeners and without notifications.
const probeChannel = "edda_pooler"

// Pooled reports whether something like PgBouncer stands between conn and Postgres, which answers as backend. A pooler
// gives its clients numbers of its own, to cancel queries by.
func Pooled(conn *pgx.Conn, backend int32) bool {
	return conn.PgConn().PID() != uint32(backend) //nolint:gosec // a process id
}

// SharesSessions reports whether a pooler gives a client that listens another session for each transaction, so that
// neither a notification nor the lock of a session can be relied on. It is certain when it says so. It asks in the
// pool's own mode, so that an error of the class Mispooled says that this mode does not work there.
func SharesSessions(ctx context.Context, config *pgxpool.Config) (bool, error) {
	p := prober{sql: Load(poolerStatements, Schema{}).Get("backend")}
	one, err := connect(ctx, config) // without AfterConnect, whose statements may be what fails here
	if err != nil {
		return false, err
	}
	defer HangUp(ctx, one)
	// a pooler may leave a client that listens its session
	if _, err := one.Exec(ctx, "listen "+probeChannel); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	first, err := p.backend(ctx, one)
	if err != nil || !Pooled(one, first) {
		return false, err
	}
	two, err := connect(ctx, config)
	if err != nil {
		return false, err
	}
	defer HangUp(ctx, two)
	for range comparisons {
		if shared, err := p.compare(ctx, two, one, first); shared || err != nil {
			return shared, err
		}
	}
	return false, nil
}

const (
	// until one tells: where many clients share few sessions, one may be given the same session again by chance
	comparisons = 5
	// that one session is held while another is asked for; a pooler that has no other to give gives this one then
	holdMost = time.Second
)

var errNoSecondSession = errors.New("the pooler before Postgres gave no second session in time, so it is not known " +
	"whether it shares them: try again")

type prober struct{ sql string }

// compare has another client, two, in a transaction, and asks one again meanwhile.
func (p prober) compare(ctx context.Context, two, one *pgx.Conn, first int32) (bool, error) {
	tx, err := two.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	theirs, err := p.backend(ctx, tx)
	if err != nil {
		return false, err
	}
	if theirs == first { // what one left behind is here
		if _, err := tx.Exec(ctx, "unlisten "+probeChannel); err != nil {
			return true, fmt.Errorf("unlisten: %w", err)
		}
		return true, tx.Commit(ctx)
	}
	// the network connection, which others may close
	release := time.AfterFunc(holdMost, func() { _ = two.PgConn().Conn().Close() })
	again, err := p.backend(ctx, one)
	switch held := release.Stop(); {
	case err != nil:
		return false, err
	case again != first:
		return true, nil
	case !held:
		return false, errNoSecondSession
	}
	return false, tx.Commit(ctx)
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (p prober) backend(ctx context.Context, q querier) (pid int32, err error) {
	if err := q.QueryRow(ctx, p.sql).Scan(&pid); err != nil {
		return 0, fmt.Errorf("ask which session this is: %w", err)
	}
	return pid, nil
}
