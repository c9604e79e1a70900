package persistence

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Known is a key of a saga with the last instance that a reader has read. ID and Version are zero if there was none.
type Known struct {
	Saga    string
	Key     string
	ID      saga.ID
	Version int64
}

// Change is the new state of one Known: a new instance or version, or no instance if Live is false. Faulty is set if
// a column cannot be decoded; the instance then has no timeouts and no originator.
type Change struct {
	N        int // index in the argument of Changed
	Live     bool
	Instance saga.Instance
	Faulty   error
}

// Changed returns a Change for each element of known that differs from the database. It is one statement with an
// index probe for each, takes no lock and never waits, and the result may be outdated when it arrives. q is any pool,
// connection or transaction.
func (s *Store) Changed(ctx context.Context, q Queryer, known []Known) ([]Change, error) {
	sagas, keys, ids, versions := make([]string, len(known)), make([]string, len(known)), make([]string, len(known)),
		make([]int64, len(known))
	for n, k := range known {
		sagas[n], keys[n], ids[n], versions[n] = k.Saga, k.Key, k.ID.String(), k.Version
	}
	// Planned on each call, like list.
	rows, err := q.Query(ctx, s.sql.Get("changed"), pg.Planned, sagas, keys, ids, versions)
	if err != nil {
		return nil, fmt.Errorf("read the versions of %d saga instances: %w", len(known), err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Change,
		error) {
		return scanChange(row, known)
	})
	if err != nil {
		return nil, fmt.Errorf("read the versions of %d saga instances: %w", len(known), err)
	}
	return changes, nil
}

func scanChange(row pgx.CollectableRow, known []Known) (c Change, err error) {
	var (
		id                   *string
		version              *int64
		stateVersion         *int
		timeouts, originator []byte
	)
	i := &c.Instance
	if err := row.Scan(&c.N, &id, &version, &stateVersion, &i.State, &timeouts, &originator); err != nil {
		return c, err
	}
	c.N--
	i.Saga, i.Key = known[c.N].Saga, known[c.N].Key
	if id == nil {
		return c, nil
	}
	c.Live, i.Version, i.StateVersion = true, *version, *stateVersion
	if i.ID, err = saga.ParseID(*id); err != nil {
		return c, err
	}
	c.Faulty = understand(i, timeouts, originator)
	return c, nil
}
