package persistence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Limits of the number of instances that a list returns.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// checkLimit replaces an unset limit by the default. It refuses a limit above MaxLimit, because a list that silently
// ended at MaxLimit would look complete.
func checkLimit(limit *int) error {
	if *limit <= 0 {
		*limit = DefaultLimit
	}
	if *limit > MaxLimit {
		return fmt.Errorf("the limit is %d, want at most %d: continue the list behind its last row", *limit, MaxLimit)
	}
	return nil
}

// ListOptions select instances of a list. A zero field is no condition.
type ListOptions struct {
	Saga      string
	KeyPrefix string // only with Saga
	AfterSaga string // continue after the instance of this saga and AfterKey; "" with an AfterKey means Saga
	AfterKey  string
	Limit     int  // 0 or less is DefaultLimit; more than MaxLimit is an error
	Oldest    bool // the first that began, over all sagas, in that order; the fields above Limit are ignored
	// Quiet lists instances that may be stuck, among the MaxLimit oldest live ones: first instances whose timeout is
	// overdue by more than a minute, then instances that have not changed for longest. No remembered ones.
	Quiet bool
}

// Listed is a stored instance, for operators. In a list Instance.State is nil.
type Listed struct {
	Instance saga.Instance
	Started  time.Time
	Changed  time.Time // when the transaction of its last save, or of its start, began
	Overdue  time.Time // in a list of Quiet: the due time of its overdue timeout; zero if it has none
	Faulty   error     // a column cannot be decoded; the instance then has no timeouts and no originator
}

var errPrefixAlone = errors.New("a key prefix needs the name of the saga")

// List returns live instances without their states: in the byte order of saga and key, the oldest first, or the
// instances that may be stuck. It reads only as many index entries as it returns, or at most QuietWalk rows for
// ListOptions.Quiet. It takes no lock and never waits, and the result may be outdated when it arrives. q is any pool,
// connection or transaction. A KeyPrefix without Saga, and a Limit above MaxLimit, are errors.
func (s *Store) List(ctx context.Context, q Queryer, o ListOptions) ([]Listed, error) {
	if o.KeyPrefix != "" && o.Saga == "" {
		return nil, fmt.Errorf("list saga instances: %w", errPrefixAlone)
	}
	if o.AfterKey != "" && o.AfterSaga == "" {
		o.AfterSaga = o.Saga
	}
	if err := checkLimit(&o.Limit); err != nil {
		return nil, fmt.Errorf("list saga instances: %w", err)
	}
	if o.Quiet {
		return s.quiet(ctx, q, o.Limit)
	}
	// Postgres starts reading at the first of the two conditions, so both get the later bound.
	saga, key := o.Saga, o.KeyPrefix
	if cmp.Or(cmp.Compare(o.AfterSaga, saga), cmp.Compare(o.AfterKey, key)) > 0 {
		saga, key = o.AfterSaga, o.AfterKey
	}
	sql, args := s.sql.Get("list"), []any{saga, key, o.AfterSaga, o.AfterKey, o.Limit}
	if o.Oldest {
		sql, args = s.sql.Get("oldest"), []any{o.Limit}
	}
	all, err := listed(ctx, q, sql, args...)
	if err != nil || o.Oldest {
		return all, err
	}
	return o.cut(all), nil
}

// listed runs a statement of a list. It is planned on each call: a plan that was made for the empty table would read
// the whole table.
func listed(ctx context.Context, q Queryer, sql string, args ...any) ([]Listed, error) {
	rows, err := q.Query(ctx, sql, append([]any{pg.Planned}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("list saga instances: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanListed)
	if err != nil {
		return nil, fmt.Errorf("list saga instances: %w", err)
	}
	return all, nil
}

// cut ends the list at the end of the saga or prefix. A condition in the statement would search the rest of the index.
func (o ListOptions) cut(all []Listed) []Listed {
	for n := range all {
		i := &all[n].Instance
		if o.Saga != "" && i.Saga != o.Saga || !strings.HasPrefix(i.Key, o.KeyPrefix) {
			return all[:n]
		}
	}
	return all
}

// Show returns the live instance of a key with its stored state; ok is false if there is no instance. It takes no
// lock and never waits. q is any pool, connection or transaction.
func (s *Store) Show(ctx context.Context, q Queryer, name, key string) (l Listed, ok bool, err error) {
	rows, err := q.Query(ctx, s.sql.Get("show"), pg.Planned, name, key)
	if err != nil {
		return Listed{}, false, fmt.Errorf("show saga %s/%s: %w", name, printable(key), err)
	}
	found, err := pgx.CollectRows(rows, scanListed)
	if err != nil {
		return Listed{}, false, fmt.Errorf("show saga %s/%s: %w", name, printable(key), err)
	}
	if len(found) == 0 {
		return Listed{}, false, nil
	}
	return found[0], true, nil
}

func scanListed(row pgx.CollectableRow) (l Listed, err error) {
	var (
		i                    = &l.Instance
		id                   string
		timeouts, originator []byte
	)
	err = row.Scan(&id, &i.Saga, &i.Key, &i.Version, &i.StateVersion, &i.State, &timeouts, &originator, &l.Started,
		&l.Changed)
	if err != nil {
		return l, err
	}
	l.Started, l.Changed = l.Started.UTC(), l.Changed.UTC()
	if i.ID, err = saga.ParseID(id); err != nil {
		return l, err
	}
	l.Faulty = understand(i, timeouts, originator)
	return l, nil
}

// understand decodes the JSON columns timeouts and originator. After an error the instance has neither.
func understand(i *saga.Instance, timeouts, originator []byte) error {
	err := understood("timeouts", timeouts, &i.Pending)
	if err == nil {
		err = understood("originator", originator, &i.Originator)
	}
	if err != nil {
		i.Pending, i.Originator = nil, saga.Originator{}
	}
	return err
}

func understood(column string, text []byte, into any) error {
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("column %s: %w", column, err)
	}
	return nil
}
