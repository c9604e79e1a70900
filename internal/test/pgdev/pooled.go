package pgdev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// BouncerVariable, set to a mode of pgx such as cache_describe, makes tests put a PgBouncer in transaction mode
// between the shared server and the pools of the code under test. The preparations and checks of a test use direct
// connections.
const BouncerVariable = "EDDA_TEST_BOUNCER"

const pooledSessions = 30 // for all tests of a binary

// Pooled reports whether BouncerVariable is set.
func Pooled() bool { return os.Getenv(BouncerVariable) != "" }

// PooledDSN returns the connection string with which the code under test reaches the database of dsn: dsn itself, or
// that of the shared PgBouncer if BouncerVariable is set and dsn belongs to the shared server.
func PooledDSN(t testing.TB, dsn string) string {
	t.Helper()
	if !Pooled() {
		return dsn
	}
	server, err := url.Parse(DSN(t))
	from, errFrom := url.Parse(dsn)
	if err := errors.Join(err, errFrom); err != nil {
		t.Fatalf("pgdev: %v", err)
	}
	if from.Host != server.Host {
		return dsn
	}
	pooled, err := sharedBouncer(context.WithoutCancel(t.Context()), server.String())
	if err != nil {
		t.Fatalf("pgdev: %v", err)
	}
	to, err := url.Parse(pooled)
	if err != nil {
		t.Fatalf("pgdev: %v", err)
	}
	to.Path = from.Path
	return to.String() + "&default_query_exec_mode=" + os.Getenv(BouncerVariable)
}

func sharedBouncer(ctx context.Context, dsn string) (string, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.bouncer == nil && shared.err == nil {
		shared.bouncer, shared.err = StartBouncer(ctx, dsn, BouncerOptions{
			Settings: map[string]string{"default_pool_size": strconv.Itoa(pooledSessions)}})
	}
	if shared.err != nil {
		return "", shared.err
	}
	return shared.bouncer.DSN(), nil
}

// stopBouncer stops the shared PgBouncer, and returns an error if the tests have left something in a session of it.
func stopBouncer() error {
	if shared.bouncer == nil {
		return nil
	}
	ctx, cancel := withDeadline(context.Background())
	defer cancel()
	left, err := shared.bouncer.Left(ctx, pooledSessions)
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("tests have left in sessions of PgBouncer: %s", strings.Join(left, "; ")))
	}
	return errors.Join(err, shared.bouncer.Stop())
}

// leftBehind are the things that a session should not have at the begin of a transaction. PgBouncer itself carries over
// five settings from client to client, and the settings of a transaction end with it.
const leftBehind = `
SELECT 'setting ' || name || ' = ' || setting FROM pg_settings WHERE source = 'session'
   AND name NOT LIKE 'transaction\_%' AND name <> ALL ($1::text[] ||
       ARRAY['application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings'])
UNION ALL SELECT 'statement ' || name || ': ' || left(statement, 60) FROM pg_prepared_statements
UNION ALL SELECT 'cursor ' || name FROM pg_cursors
UNION ALL SELECT 'channel ' || c FROM pg_listening_channels() c
UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()`

// Left checks each of the n sessions of PgBouncer, and returns the state that clients have left there.
func (b *Bouncer) Left(ctx context.Context, n int) (left []string, err error) {
	err = b.InEachSession(ctx, n, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, leftBehind, slices.Collect(maps.Keys(spoiled)))
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		left = append(left, found...)
		return err
	})
	slices.Sort(left)
	return slices.DeleteFunc(slices.Compact(left), func(what string) bool {
		// its own, for clients that prepare
		return b.KnowsStatements() && strings.HasPrefix(what, "statement PGBOUNCER_")
	}), err
}

// KnowsStatements reports whether named prepared statements work through PgBouncer, as they do since 1.21.
func (b *Bouncer) KnowsStatements() bool {
	var major, minor int
	_, err := fmt.Sscanf(b.version, "%d.%d", &major, &minor)
	return err == nil && (major > 1 || minor >= 21)
}

// InEachSession calls do in a transaction of each of the n sessions of PgBouncer, all of them open at once. A client
// that works through PgBouncer at this time may hold one session until another is free. So if a session is not free
// within a second, InEachSession gives all of them back, and begins again until ctx ends: do is called again too.
func (b *Bouncer) InEachSession(ctx context.Context, n int, do func(tx pgx.Tx) error) error {
	for {
		all, err := b.tryEachSession(ctx, n, do)
		if all || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("all %d sessions of PgBouncer were never free at once: %w", n, context.Cause(ctx))
		}
	}
}

func (b *Bouncer) tryEachSession(ctx context.Context, n int, do func(tx pgx.Tx) error) (all bool, err error) {
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	seen := map[uint32]bool{}
	for range n {
		conn, err := pgx.Connect(ctx, b.dsn+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			return false, err
		}
		defer conn.Close(ctx)
		tx, err := conn.Begin(soon) // PgBouncer lets it wait for a session
		if soon.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		var pid uint32
		if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return false, err
		}
		seen[pid] = true
		if err := do(tx); err != nil {
			return false, err
		}
	}
	if len(seen) != n {
		return false, fmt.Errorf("%d sessions of PgBouncer, want %d", len(seen), n)
	}
	return true, nil
}
