package deadletter

import (
	"context"
	"fmt"
	"math"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// walk reads dead letters in the order of their numbers, a bounded number per statement, and selects from them.
type walk struct {
	of    recoverability.LetterFilter
	after int64
	last  int64
	most  int // letters to select
	rows  int // letters to read; at least most
}

// walkRows is the largest number of letters that one statement reads.
const walkRows = 10_000

// found is the result of one statement of a walk, and the last number that it has read.
type found struct {
	letters []candidate
	mark    int64
	over    bool // there are no later letters
}

type candidate struct {
	number   int64
	endpoint string
	size     int
}

func (s *Store) walk(ctx context.Context, q Queryer, w walk) (found, error) {
	sql, args := w.statement(s.sql)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return found{}, err
	}
	var (
		f              found
		number         *int64
		endpoint       *string
		size           *int
		looked, lookUp int64
	)
	_, err = pgx.ForEachRow(rows, []any{&looked, &lookUp, &number, &endpoint, &size}, func() error {
		if number != nil {
			f.letters = append(f.letters, candidate{*number, *endpoint, *size})
		}
		return nil
	})
	switch {
	case err != nil:
		return found{}, err
	case len(f.letters) == w.most:
		f.mark = f.letters[w.most-1].number
	case looked == int64(w.rows):
		f.mark = lookUp
	default:
		f.mark, f.over = w.last, true
	}
	return f, nil
}

// statement returns a statement that is planned for each call: a plan that a connection cached while the table was
// empty would read and sort the whole table.
func (w walk) statement(of pg.Statements) (sql string, args []any) {
	f := w.of
	from, before := filter(f).period()
	args = []any{pg.Planned, w.after, w.last, w.rows, w.most, f.Kind, f.Endpoint, from, before}
	switch {
	case !f.MessageID.IsZero():
		return of.Get("walk_of_message"), append(args, f.Group, f.MessageID.String())
	case f.Group != "":
		return of.Get("walk_of_group"), append(args, f.Group)
	case f.Endpoint != "":
		return of.Get("walk_of_endpoint"), args
	}
	return of.Get("walk"), args
}

// Count returns the number of dead letters that a filter selects, up to CountLimit. One statement reads at most
// 10,000 letters. If no index fits the filter, as for a kind or a time alone, Count reads all letters.
func (s *Store) Count(ctx context.Context, q Queryer, f recoverability.LetterFilter) (n int64, err error) {
	if err := filter(f).check(); err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	w := walk{of: f, after: f.After, last: math.MaxInt64, most: walkRows, rows: walkRows}
	for n < CountLimit {
		found, err := s.walk(ctx, q, w)
		if err != nil {
			return 0, fmt.Errorf("count dead letters: %w", err)
		}
		n += int64(len(found.letters))
		if w.after = found.mark; found.over {
			break
		}
	}
	return min(n, CountLimit), nil
}
