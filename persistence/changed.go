package persistence

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Known is a saga's key, and the instance of it that a reader has seen last. Without one ID and Version are zero.
type Known struct {
	Saga    string
	Key     string
	ID      saga.ID
	Version int64
}

// Change is what has become of one Known: another instance or version, or with Live false none at all. Faulty is set
// when a column cannot be understood; the instance is then without its timeouts and originator.
type Change struct {
	N        int // its place in the list that was asked for
	Live     bool
	Instance saga.Instance
	Faulty   error
}

// Changed returns those of known that are not as they were. It is one statement with a probe of an index for each,
// neither locks nor waits, and the answer may be old when it arrives. Any pool, connection or transaction serves as q.
func (s *Store) Changed(ctx context.Context, q Queryer, known []Known) ([]Change, error) {
	sagas, keys, ids, versions := make([]string, len(known)), make([]string, len(known)), make([]string, len(known)),
		make([]int64, len(known))
	for n, k := range known {
		sagas[n], keys[n], ids[n], versions[n] = k.Saga, k.Key, k.ID.String(), k.Version
	}
	// Planned on each call, as list is.
	rows, err := q.Query(ctx, s.sql.Get("changed"), pg.Planned, sagas, keys, ids, versions)
	if err != nil {
		return nil, fmt.Errorf("look at %d saga instances: %w", len(known), err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Change,
		error) {
		return scanChange(row, known)
	})
	if err != nil {
		return nil, fmt.Errorf("look at %d saga instances: %w", len(known), err)
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
