package deadletter

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// How many rows a list returns.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Filter chooses rows of a list. Every zero field is no condition.
type Filter struct {
	Endpoint  string
	Kind      string
	MessageID saga.ID
	After     int64 // continue behind this number; numbers of open transactions may still appear before it
	Limit     int   // 0 is DefaultLimit; at most MaxLimit
}

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return DefaultLimit
	}
	return min(f.Limit, MaxLimit)
}

// List returns dead letters without their bodies, in the order of their numbers.
func (s *Store) List(ctx context.Context, q Queryer, f Filter) ([]Letter, error) {
	sql, args := s.listing(f)
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Letter, error) { return scanLetter(row) })
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return letters, nil
}

// listing has a statement planned anew for each call: a plan that a connection kept from the time of an empty
// table would read and sort the whole of it.
func (s *Store) listing(f Filter) (sql string, args []any) {
	args = []any{pgx.QueryExecModeExec, f.After, f.Kind, f.limit()}
	switch {
	case !f.MessageID.IsZero():
		return s.sql.Get("list_of_message"), append(args, f.Endpoint, f.MessageID.String())
	case f.Endpoint != "":
		return s.sql.Get("list_of_endpoint"), append(args, f.Endpoint)
	}
	return s.sql.Get("list"), args
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
	rows, err := q.Query(ctx, sql, number)
	if err != nil {
		return Letter{}, err
	}
	letters, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Letter, err error) {
		var body []byte
		l, err = scanLetter(row, &body)
		l.Body = body
		return l, err
	})
	if err == nil && len(letters) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Letter{}, err
	}
	return letters[0], nil
}

// ListDiscarded returns messages that were consumed without effect, in the order of their numbers.
func (s *Store) ListDiscarded(ctx context.Context, q Queryer, f Filter) ([]Discarded, error) {
	id := ""
	if !f.MessageID.IsZero() {
		id = f.MessageID.String()
	}
	rows, err := q.Query(ctx, s.sql.Get("list_discarded"), pgx.QueryExecModeExec, f.After, f.Kind, f.limit(), f.Endpoint, id)
	if err != nil {
		return nil, fmt.Errorf("list discarded messages: %w", err)
	}
	discarded, err := pgx.CollectRows(rows, scanDiscarded)
	if err != nil {
		return nil, fmt.Errorf("list discarded messages: %w", err)
	}
	return discarded, nil
}
