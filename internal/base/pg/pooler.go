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

// Pooled reports whether a pooler such as PgBouncer is between conn and Postgres, which answers as backend. A pooler
// gives its clients numbers of its own for the cancelling of queries.
func Pooled(conn *pgx.Conn, backend int32) bool {
	return conn.PgConn().PID() != uint32(backend) //nolint:gosec // a process id
}

// SharesSessions reports whether a pooler gives a listening client a different session for each transaction, so that
// neither a notification nor the lock of a session can be relied on. true is certain; false is not. It queries in the
// pool's own mode, so an error of the class Mispooled means that this mode does not work there.
func SharesSessions(ctx context.Context, config *pgxpool.Config) (bool, error) {
	p := prober{sql: Load(poolerStatements, Schema{}).Get("backend")}
	one, err := connect(ctx, config) // without AfterConnect, whose statements may fail here
	if err != nil {
		return false, err
	}
	defer HangUp(ctx, one)
	// a pooler may reserve a session for a client that listens
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
	// repeat until a try is decisive: if many clients share few sessions, one may get the same session again by
	// chance
	comparisons = 5
	// how long one session is held while a second is requested; a pooler without a second one then gives this one
	holdMost = time.Second
)

var errNoSecondSession = errors.New("the pooler in front of Postgres gave no second session in time, so it is " +
	"unclear " +
	"whether it shares them: try again")

type prober struct{ sql string }

// compare holds a transaction with client two, and checks which session client one gets at the same time.
func (p prober) compare(ctx context.Context, two, one *pgx.Conn, first int32) (bool, error) {
	tx, err := two.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	theirs, err := p.backend(ctx, tx)
	if err != nil {
		return false, err
	}
	if theirs == first { // the setting that client one left is in this session
		if _, err := tx.Exec(ctx, "unlisten "+probeChannel); err != nil {
			return true, fmt.Errorf("unlisten: %w", err)
		}
		return true, tx.Commit(ctx)
	}
	// closes the network connection, which other goroutines may close
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
		return 0, fmt.Errorf("read the id of the session: %w", err)
	}
	return pid, nil
}
