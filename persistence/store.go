package persistence

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The limits of a row.
const (
	MaxKey   = 512     // bytes, so that an index entry has room to spare
	MaxState = 1 << 20 // bytes of encoded state
)

//go:embed statements.sql
var statements string

// Sender sends a pipeline of statements: a connection or a transaction of pgx, on a connection that pg.RegisterArrays
// has prepared.
type Sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Store loads and saves instances of one schema in the caller's transaction. It has no state and is safe for
// concurrent use.
type Store struct{ sql pg.Statements }

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Wait locks an instance, and waits up to the transaction's lock_timeout for another transaction that has locked it.
// Only a transaction that has locked no other instance may call it. A missing instance is not an error.
func (s *Store) Wait(ctx context.Context, tx Sender, id saga.ID) error {
	b := &pgx.Batch{}
	b.Queue(s.sql.Get("wait"), [16]byte(id)).Exec(func(pgconnTag) error { return nil })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("wait for saga instance %s: %w", id, err)
	}
	return nil
}

// Read returns the live instance of a key; ok is false if there is no instance. It takes no lock and never waits, and
// the result may be outdated when it arrives. q is any pool, connection or transaction.
func (s *Store) Read(ctx context.Context, q Queryer, name, key string) (i saga.Instance, ok bool, err error) {
	rows, err := q.Query(ctx, s.sql.Get("read"), pg.Planned, name, key)
	if err != nil {
		return saga.Instance{}, false, fmt.Errorf("read saga %s/%s: %w", name, key, err)
	}
	defer rows.Close()
	if rows.Next() {
		if i, err = readInstance(pg.CurrentRow(rows)); err != nil {
			return saga.Instance{}, false, err
		}
		ok = true
	}
	if err := rows.Err(); err != nil {
		return saga.Instance{}, false, fmt.Errorf("read saga %s/%s: %w", name, key, err)
	}
	return i, ok, nil
}

// LastPage names the page of the history with the last recorded version of a live instance.
type LastPage struct {
	Instance saga.ID
	Page     saga.ID // zero if no page has a version of the instance
}

// LastPage returns the last page of the live instance of a key; ok is false if there is no instance.
func (s *Store) LastPage(ctx context.Context, q Queryer, name, key string) (last LastPage, ok bool, err error) {
	rows, err := q.Query(ctx, s.sql.Get("last_page"), pg.Planned, name, key)
	if err != nil {
		return last, false, fmt.Errorf("read saga %s/%s: %w", name, printable(key), err)
	}
	defer rows.Close()
	if rows.Next() {
		row := pg.CurrentRow(rows)
		last, ok = LastPage{Instance: row.UUID(0), Page: row.UUID(1)}, true
	}
	if err := rows.Err(); err != nil {
		return last, false, fmt.Errorf("read saga %s/%s: %w", name, printable(key), err)
	}
	return last, ok, nil
}

// NameOf returns a live instance with only its id, its saga and its key; ok is false if no instance has this id.
func (s *Store) NameOf(ctx context.Context, q Queryer, id saga.ID) (i saga.Instance, ok bool, err error) {
	rows, err := q.Query(ctx, s.sql.Get("name_of"), pg.Planned, [16]byte(id))
	if err != nil {
		return i, false, fmt.Errorf("read the name of instance %s: %w", id, err)
	}
	defer rows.Close()
	if rows.Next() {
		row := pg.CurrentRow(rows)
		i.ID, i.Saga, i.Key, ok = id, row.Text(0), row.Text(1), true
	}
	if err := rows.Err(); err != nil {
		return i, false, fmt.Errorf("read the name of instance %s: %w", id, err)
	}
	return i, ok, nil
}

// Queryer is a pool, a connection or a transaction of pgx.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readInstance reads the columns of every loading statement, in their order; the first is the ctid.
func readInstance(r pg.Row) (saga.Instance, error) {
	i := saga.Instance{
		ID:           r.UUID(1),
		Saga:         r.Text(2),
		Key:          r.Text(3),
		Version:      r.Int(4),
		StateVersion: int(r.Int(5)),
		State:        append([]byte(nil), r.Bytes(6)...),
	}
	if !r.Null(7) {
		if err := json.Unmarshal(r.Bytes(7), &i.Pending); err != nil {
			i.Pending = nil
			return i, fmt.Errorf("saga %s/%s: column timeouts: %w", i.Saga, printable(i.Key), err)
		}
	}
	if !r.Null(8) {
		if err := json.Unmarshal(r.Bytes(8), &i.Originator); err != nil {
			i.Pending, i.Originator = nil, saga.Originator{}
			return i, fmt.Errorf("saga %s/%s: column originator: %w", i.Saga, printable(i.Key), err)
		}
	}
	return i, nil
}

// printable quotes a key that could forge a line of a log.
func printable(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(key)
	}
	return key
}
