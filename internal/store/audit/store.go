package audit

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// Kept is the shortest time that an entry is kept.
const Kept = 400 * 24 * time.Hour

// Change is one change of one thing.
type Change struct {
	Verb   string // such as endpoint.pause
	Target string // such as the name of the endpoint
	Reason string // "" is the reason of the context
	// Before and After are the old and the new value, encoded with encoding/json; nil if there is no value to record.
	// A value of more than 64 KiB is recorded as its size.
	Before, After any
}

// Execer is a transaction of pgx.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Store has the statements of one schema. It is safe for concurrent use.
type Store struct{ sql pg.Statements }

// New returns the store of a schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Add writes the entry of a change in its transaction, with the actor of ctx. It writes nothing if Before and After
// are equal and not nil.
func (s *Store) Add(ctx context.Context, tx Execer, c Change) error {
	if err := s.add(ctx, tx, c); err != nil {
		return fmt.Errorf("audit of %s %.80q: %w", c.Verb, c.Target, pgerr.Explain(err))
	}
	return nil
}

func (s *Store) add(ctx context.Context, tx Execer, c Change) error {
	before, err := encode(c.Before)
	if err != nil {
		return err
	}
	after, err := encode(c.After)
	if err != nil {
		return err
	}
	if before != nil && bytes.Equal(before, after) {
		return nil
	}
	if c.Reason == "" {
		c.Reason = reasonOf(ctx)
	}
	a := ActorOf(ctx)
	_, err = tx.Exec(ctx, s.sql.Get("add"), a.Name, a.From, pg.Storable(c.Verb, mostName),
		pg.Storable(c.Target, mostName), pg.Storable(c.Reason, mostReason), before, after)
	return err
}

// Tell passes the actor and the reason of ctx to SQL functions that tx will call. SQL functions that change something
// for an operator, such as set_limit, write their own entries, because other programs may call them too.
func (s *Store) Tell(ctx context.Context, tx Execer) error {
	a := ActorOf(ctx)
	if _, err := tx.Exec(ctx, s.sql.Get("tell"), a.Name, a.From, pg.Storable(reasonOf(ctx), mostReason)); err != nil {
		return fmt.Errorf("audit: set the actor: %w", pgerr.Explain(err))
	}
	return nil
}

// mostValue is the largest size in bytes of a recorded value: the states of instances are in the history.
const mostValue = 64 << 10

func encode(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err == nil && len(text) > mostValue {
		return json.Marshal(map[string]int{"bytes": len(text)})
	}
	return text, err
}

// Prune deletes at most limit entries that are older than olderThan by the database's clock, and returns their number.
func (s *Store) Prune(ctx context.Context, db Execer, olderThan time.Duration, limit int) (int64, error) {
	tag, err := db.Exec(ctx, s.sql.Get("prune"), pg.Planned, olderThan.Seconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("prune the audit: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Entry is one change.
type Entry struct {
	Number int64
	At     time.Time // by the database's clock
	Actor  string    // as the program has passed it, or ""
	Role   string    // of the database
	From   string
	Verb   string
	Target string
	Reason string
	Before json.RawMessage // nil if no value was recorded
	After  json.RawMessage
}

// Filter selects entries. A zero field is no condition.
type Filter struct {
	By     string // the actor, or the role of entries without an actor
	Verb   string // such as endpoint.pause, or endpoint for all verbs of endpoints
	Target string
	Since  time.Time
	Until  time.Time // exclusive
	Before int64     // the number of the last entry of the preceding page
	Limit  int       // entries; 0 is 100, at most MaxPage
}

// MaxPage is the largest number of entries of a page.
const MaxPage = 10_000

const standardPage = 100

// List returns entries, the newest first. A Limit or Before out of range is an error.
func (s *Store) List(ctx context.Context, q Queryer, f Filter) ([]Entry, error) {
	if f.Limit == 0 {
		f.Limit = standardPage
	}
	if f.Limit < 0 || f.Limit > MaxPage || f.Before < 0 {
		return nil, fmt.Errorf("list the audit: Limit %d, Before %d: want up to %d, and a number of an entry", f.Limit,
			f.Before, MaxPage)
	}
	rows, err := q.Query(ctx, s.sql.Get("list"), pg.Planned, f.Before, moment(f.Since), moment(f.Until),
		pg.Storable(f.By, mostName), pg.Storable(f.Verb, mostName), pg.Storable(f.Target, mostName), f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list the audit: %w", pgerr.Explain(err))
	}
	all, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, fmt.Errorf("list the audit: %w", pgerr.Explain(err))
	}
	return all, nil
}

// compact returns JSON without the spaces that SQL functions put into it.
func compact(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if text == nil || json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

// Queryer is a pool, a connection or a transaction of pgx.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Newest returns the newest entry of a verb for each of the targets, if there is one, in no order.
func (s *Store) Newest(ctx context.Context, q Queryer, verb string, targets ...string) ([]Entry, error) {
	rows, err := q.Query(ctx, s.sql.Get("newest"), pg.Planned, verb, targets)
	if err != nil {
		return nil, fmt.Errorf("newest %s of the audit: %w", verb, pgerr.Explain(err))
	}
	all, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, fmt.Errorf("newest %s of the audit: %w", verb, pgerr.Explain(err))
	}
	return all, nil
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.Number, &e.At, &e.Actor, &e.Role, &e.From, &e.Verb, &e.Target, &e.Reason, &e.Before, &e.After)
	e.At, e.Before, e.After = e.At.UTC(), compact(e.Before), compact(e.After)
	return e, err
}

// moment returns nil, for a SQL NULL, if t is zero.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
