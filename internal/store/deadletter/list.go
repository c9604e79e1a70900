package deadletter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Limits of the number of rows that a list returns.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// filter is a LetterFilter with its checks.
type filter recoverability.LetterFilter

// check returns an error for a limit above MaxLimit, and for a filter that cannot match any letter, which is likely a
// mistake.
func (f filter) check() error {
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
func (f filter) period() (from, before pgtype.Timestamptz) {
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

func (f filter) limit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return f.Limit
}

// List returns dead letters without their bodies, in the order of their numbers; fewer than f.Limit if there are no
// more. One statement reads at most 10,000 letters, and List repeats it until it has enough.
func (s *Store) List(ctx context.Context, q Queryer, f recoverability.LetterFilter) ([]recoverability.Letter, error) {
	letters, err := s.list(ctx, q, f)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

func (s *Store) list(
	ctx context.Context, q Queryer, f recoverability.LetterFilter,
) (letters []recoverability.Letter, err error) {
	if err := filter(f).check(); err != nil {
		return nil, err
	}
	limit := filter(f).limit()
	w := walk{of: f, after: f.After, last: math.MaxInt64, rows: limit}
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
		more, err := pgx.CollectRows(rows, scanOnly)
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
func (s *Store) Show(ctx context.Context, q Queryer, number int64) (recoverability.Letter, error) {
	l, err := one(ctx, q, s.sql.Get("show"), number)
	if err != nil {
		return recoverability.Letter{}, fmt.Errorf("show dead letter %d: %w", number, err)
	}
	return l, nil
}

// one runs a statement that returns a dead letter with its body, or no row.
func one(ctx context.Context, q Queryer, sql string, number int64) (recoverability.Letter, error) {
	rows, err := q.Query(ctx, sql, pg.Planned, number)
	if err != nil {
		return recoverability.Letter{}, err
	}
	letters, err := pgx.CollectRows(rows, scanWithBody)
	if err == nil && len(letters) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return recoverability.Letter{}, err
	}
	return letters[0], nil
}

// ListDiscarded returns records of discarded messages in order. It ignores Group, DiedFrom and DiedBefore of f.
func (s *Store) ListDiscarded(
	ctx context.Context, q Queryer, f recoverability.LetterFilter,
) ([]recoverability.Discarded, error) {
	if err := filter(f).check(); err != nil {
		return nil, fmt.Errorf("list discarded messages: %w", err)
	}
	return collect(ctx, q, listing{"discarded messages", s.sql.Get("list_discarded")}, scanDiscarded, pg.Planned,
		f.After, f.Kind, filter(f).limit(), f.Endpoint, filter(f).messageID())
}

// messageID returns the id as the statements expect it: "" for any message.
func (f filter) messageID() string {
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
