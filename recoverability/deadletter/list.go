package deadletter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Limits of the number of rows that a list returns.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Filter selects rows of a list. A zero field is no condition.
type Filter struct {
	Endpoint  string
	Kind      string
	Group     string // name of a Group
	MessageID saga.ID
	After     int64 // continue after this number; open transactions may still add smaller ones
	Limit     int   // 0 or less is DefaultLimit; more than MaxLimit is an error

	DiedFrom   time.Time // died at this time or later, by the database's clock
	DiedBefore time.Time // died before this time
}

// check returns an error for a limit above MaxLimit, and for a filter that cannot match any letter, which is likely a
// mistake.
func (f Filter) check() error {
	if f.Limit > MaxLimit {
		return fmt.Errorf("Limit is %d, want at most %d: After continues the list", f.Limit, MaxLimit)
	}
	for _, t := range []time.Time{f.DiedFrom, f.DiedBefore} {
		if year := t.Year(); year < 1 || year > 9999 {
			return fmt.Errorf("DiedFrom or DiedBefore is in the year %d", year)
		}
	}
	if !f.DiedBefore.IsZero() && !f.DiedFrom.Before(f.DiedBefore) {
		return fmt.Errorf("DiedFrom %v is not before DiedBefore %v", f.DiedFrom, f.DiedBefore)
	}
	return nil
}

// period returns the bounds of the time of death of a letter; an open bound is infinite.
func (f Filter) period() (from, before pgtype.Timestamptz) {
	from = pgtype.Timestamptz{Time: f.DiedFrom, Valid: true}
	before = pgtype.Timestamptz{Time: f.DiedBefore, Valid: true}
	if f.DiedFrom.IsZero() {
		from = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	if f.DiedBefore.IsZero() {
		before = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return from, before
}

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return f.Limit
}

// List returns dead letters without their bodies, in the order of their numbers; fewer than f.Limit if there are no
// more. One statement reads at most 10,000 letters, and List repeats it until it has enough.
func (s *Store) List(ctx context.Context, q Queryer, f Filter) ([]Letter, error) {
	letters, err := s.list(ctx, q, f)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

func (s *Store) list(ctx context.Context, q Queryer, f Filter) (letters []Letter, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	limit := f.limit()
	w := walk{filter: f, after: f.After, last: math.MaxInt64, rows: limit}
	for len(letters) < limit { // also repeats for letters that ended since they were found
		w.most = limit - len(letters)
		found, err := s.walk(ctx, q, w)
		if err != nil {
			return nil, err
		}
		rows, err := q.Query(ctx, s.sql.Get("letters"), pg.Planned, numbers(found.letters))
		if err != nil {
			return nil, err
		}
		more, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Letter, error) { return scanLetter(row) })
		if err != nil {
			return nil, err
		}
		letters = append(letters, more...)
		if found.over {
			break
		}
		w.after, w.rows = found.mark, min(10*w.rows, walkRows)
	}
	return letters, nil
}

// Show returns one dead letter with its body, or ErrNotFound.
func (s *Store) Show(ctx context.Context, q Queryer, number int64) (Letter, error) {
	l, err := one(ctx, q, s.sql.Get("show"), number)
	if err != nil {
		return Letter{}, fmt.Errorf("show dead letter %d: %w", number, err)
	}
	return l, nil
}

// one runs a statement that returns a dead letter with its body, or no row.
func one(ctx context.Context, q Queryer, sql string, number int64) (Letter, error) {
	rows, err := q.Query(ctx, sql, pg.Planned, number)
	if err != nil {
		return Letter{}, err
	}
	letters, err := pgx.CollectRows(rows, scanWithBody)
	if err == nil && len(letters) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Letter{}, err
	}
	return letters[0], nil
}

// ListDiscarded returns records of discarded messages in order. It ignores Group, DiedFrom and DiedBefore of f.
func (s *Store) ListDiscarded(ctx context.Context, q Queryer, f Filter) ([]Discarded, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("list discarded messages: %w", err)
	}
	return collect(ctx, q, listing{"discarded messages", s.sql.Get("list_discarded")}, scanDiscarded, pg.Planned,
		f.After, f.Kind,
		f.limit(), f.Endpoint, f.messageID())
}

// messageID returns the id as the statements expect it: "" for any message.
func (f Filter) messageID() string {
	if f.MessageID.IsZero() {
		return ""
	}
	return f.MessageID.String()
}

// listing is a statement and the name of its rows for errors.
type listing struct{ what, sql string }

// collect runs a statement and scans its rows.
func collect[T any](ctx context.Context, q Queryer, l listing, scan pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := q.Query(ctx, l.sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.what, err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.what, err)
	}
	return all, nil
}
