package persistence

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed records.sql
var recordStatements string

var (
	// ErrNoRecord means that the key has no record.
	ErrNoRecord = errors.New("there is no such record")
	// ErrChanged means that another write came first: the record exists already, has a new version, or is deleted.
	ErrChanged = errors.New("another write came first")
)

// Record is a value that a program defines, under a key.
type Record[T any] struct {
	Key     string
	Version int64     // of its last write; each write of a schema gets a new, larger version
	Changed time.Time // when the transaction of its last write began
	Value   T
}

// Records are the records of one collection. A program reads and writes them next to its sagas: in the transactions
// of their handlers, in the transactions of its web handlers, or on their own. Records is safe for concurrent use.
//
// A key has 1 to 512 bytes of UTF-8 without NUL. A value is stored as JSON, at most 1 MiB; the error about a larger
// one is saga.ErrTooLarge.
//
// Each method except Change is one statement, which commits by itself if db is a pool or a connection. In a transaction
// a write waits for an uncommitted write of the same record, and two transactions that write several records in
// different orders may deadlock, as with any table. At REPEATABLE READ and SERIALIZABLE the second of two concurrent
// writes fails with the error 40001 of Postgres, also in Change; on a pool, Records always use READ COMMITTED.
type Records[T any] struct {
	sql        pg.Statements
	collection string
}

// DB is a pool, a connection or a transaction of pgx.
type DB interface {
	Queryer
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// NewRecords returns the records of a collection in a schema; "" is "edda". It returns an error unless the
// collection's name is valid for saga.CheckName. It does no I/O.
func NewRecords[T any](schema, collection string) (*Records[T], error) {
	parsed, err := pg.ParseSchema(schema)
	if err == nil {
		err = saga.CheckName(collection)
	}
	if err != nil {
		return nil, fmt.Errorf("records of %.80q: %w", collection, err)
	}
	return &Records[T]{sql: pg.Load(recordStatements, parsed), collection: collection}, nil
}

// Get reads a record, or returns ErrNoRecord. It takes no lock and never waits.
func (r *Records[T]) Get(ctx context.Context, db DB, key string) (Record[T], error) {
	return r.one(ctx, db, recordCall{verb: "get", sql: r.sql.Get("record_get"), key: key, none: ErrNoRecord})
}

// Create writes a record if its key has none, and returns ErrChanged otherwise.
func (r *Records[T]) Create(ctx context.Context, db DB, key string, value T) (Record[T], error) {
	return r.write(ctx, db, recordCall{verb: "create", sql: r.sql.Get("record_create"), key: key}, value)
}

// Update writes the value of a record if it still has the version that was read, and returns ErrChanged otherwise.
func (r *Records[T]) Update(ctx context.Context, db DB, read Record[T]) (Record[T], error) {
	c := recordCall{verb: "update", sql: r.sql.Get("record_update"), key: read.Key, args: []any{read.Version}}
	return r.write(ctx, db, c, read.Value)
}

// Put writes a record, whether or not its key has one.
func (r *Records[T]) Put(ctx context.Context, db DB, key string, value T) (Record[T], error) {
	return r.write(ctx, db, recordCall{verb: "put", sql: r.sql.Get("record_put"), key: key}, value)
}

// Delete deletes a record if it still has the version that was read, and returns ErrChanged otherwise.
func (r *Records[T]) Delete(ctx context.Context, db DB, read Record[T]) error {
	c := recordCall{verb: "delete", sql: r.sql.Get("record_delete"), key: read.Key, args: []any{read.Version}}
	c.none = ErrChanged
	_, err := r.one(ctx, db, c)
	return err
}

// Change reads a record, or begins with the zero value if there is no record, calls change, and writes the value
// back. If a concurrent write comes first, Change starts again, until ctx ends: change may be called several times.
// If change returns an error, Change returns that error and writes nothing.
func (r *Records[T]) Change(ctx context.Context, db DB, key string, change func(*T) error) (Record[T], error) {
	for {
		found, err := r.Get(ctx, db, key)
		absent := errors.Is(err, ErrNoRecord)
		if err != nil && !absent {
			return Record[T]{}, err
		}
		if err := change(&found.Value); err != nil {
			return Record[T]{}, err
		}
		if absent {
			found, err = r.Create(ctx, db, key, found.Value)
		} else {
			found, err = r.Update(ctx, db, found)
		}
		if !errors.Is(err, ErrChanged) {
			return found, err
		}
	}
}

// List reads the records after a key, in the byte order of keys; "" starts with the first. limit is at most 200, and
// more is an error; 0 or less means 50.
func (r *Records[T]) List(ctx context.Context, db DB, after string, limit int) ([]Record[T], error) {
	if err := checkLimit(&limit); err != nil {
		return nil, r.failed("list", "", err)
	}
	rows, err := db.Query(ctx, r.sql.Get("record_list"), r.collection, after, limit)
	if err != nil {
		return nil, r.failed("list", "", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Record[T], error) {
		found, err := r.scan(row)
		if err != nil {
			err = fmt.Errorf("record %s: %w", printable(found.Key), err)
		}
		return found, err
	})
	if err != nil {
		return nil, r.failed("list", "", err)
	}
	return list, nil
}

// recordCall is a call of a statement that returns a record or no row.
type recordCall struct {
	verb, sql, key string
	args           []any // after the collection and the key
	none           error // the error for no row
}

// write calls a statement whose first argument after the key is a value.
func (r *Records[T]) write(ctx context.Context, db DB, c recordCall, value T) (Record[T], error) {
	text, err := encodeValue(value)
	if err != nil {
		return Record[T]{}, r.failed(c.verb, c.key, err)
	}
	c.args, c.none = append([]any{text}, c.args...), ErrChanged
	return r.one(ctx, db, c)
}

func (r *Records[T]) one(ctx context.Context, db DB, c recordCall) (Record[T], error) {
	if !fits(c.key) {
		err := fmt.Errorf("a key of %d bytes: want 1 to %d, in UTF-8 and without NUL", len(c.key), MaxKey)
		return Record[T]{}, r.failed(c.verb, c.key, err)
	}
	ask := db.QueryRow
	if pool, ok := db.(*pgxpool.Pool); ok {
		ask = pg.Committed(pool).Row // READ COMMITTED, whatever the database's default is
	}
	found, err := r.scan(ask(ctx, c.sql, append([]any{r.collection, c.key}, c.args...)...))
	if errors.Is(err, pgx.ErrNoRows) {
		err = c.none
	}
	if err != nil {
		return Record[T]{}, r.failed(c.verb, c.key, err)
	}
	return found, nil
}

func (r *Records[T]) failed(verb, key string, err error) error {
	return fmt.Errorf("%s record %s/%s: %w", verb, r.collection, shortened(key), pgerr.Explain(err))
}

func (r *Records[T]) scan(row pgx.Row) (found Record[T], err error) {
	var text []byte
	if err := row.Scan(&found.Key, &found.Version, &found.Changed, &text); err != nil {
		return found, err
	}
	return found, decodeValue(text, &found.Value)
}

// fits reports whether a key can be stored.
func fits(key string) bool {
	return key != "" && len(key) <= MaxKey && utf8.ValidString(key) && !strings.ContainsRune(key, 0)
}

// held wraps a value as a message, for the codec of sagas' states, which reports data that encoding/json would lose.
type held[T any] struct {
	V T `json:"v"`
}

// Kind is not used.
func (held[T]) Kind() string { return "record" }

const (
	heldBefore = `{"v":`
	heldAfter  = `}`
)

// encodeValue returns a string and not bytes: pgx's simple protocol would send bytes as bytea.
func encodeValue[T any](value T) (string, error) {
	text, err := saga.JSON.Encode(held[T]{value})
	if err != nil {
		return "", fmt.Errorf("encode its value: %w", err)
	}
	text = text[len(heldBefore) : len(text)-len(heldAfter)]
	if len(text) > MaxState {
		return "", fmt.Errorf("its value has %d bytes, limit %d: %w", len(text), MaxState, saga.ErrTooLarge)
	}
	return string(text), nil
}

func decodeValue[T any](text []byte, into *T) error {
	var read held[T]
	if err := saga.JSON.Decode([]byte(heldBefore+string(text)+heldAfter), &read); err != nil {
		return fmt.Errorf("decode its value: %w", err)
	}
	*into = read.V
	return nil
}
