package persistence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Op says what a save does with an instance.
type Op uint8

// An instance that was read and not changed is still checked, because messages were decided on it. One
// that starts and completes in the same batch is still inserted, so that the unique constraint sees it.
const (
	Check Op = iota
	Update
	Complete
	Start
	StartAndComplete
)

// Write is one instance to save. Instance.Version is the version that was loaded; a start has none.
type Write struct {
	Op       Op
	Instance saga.Instance
}

// Save is one save in the making: the caller queues its two statements into a pipeline, with nothing that may
// wait after the second, sends it, and asks Won.
type Save struct {
	store  *Store
	writes []Write
	won    []bool
	starts map[saga.ID]int
	err    error
}

// NewSave prepares a save of writes. An instance may occur only once.
func (s *Store) NewSave(writes []Write) *Save {
	return &Save{store: s, writes: writes, won: make([]bool, len(writes)), starts: map[saga.ID]int{}}
}

// Won tells, after the pipeline was sent, whether the i-th write is part of the transaction.
func (v *Save) Won(i int) bool { return v.won[i] }

// QueueStarts queues the inserts. It is the only statement that may wait: it must be the first of the transaction that can.
func (v *Save) QueueStarts(b *pgx.Batch) {
	var starts []int
	for n, w := range v.writes {
		if w.Op >= Start {
			starts = append(starts, n)
			v.starts[w.Instance.ID] = n
		}
	}
	if len(starts) == 0 {
		return
	}
	slices.SortFunc(starts, func(a, b int) int {
		x, y := &v.writes[a].Instance, &v.writes[b].Instance
		return cmp.Or(cmp.Compare(x.Saga, y.Saga), cmp.Compare(x.Key, y.Key))
	})
	iid, name, key, version := pg.UUIDs(), pg.Texts(), pg.Texts(), pg.Ints()
	state, timeouts, originator := pg.Texts(), pg.Texts(), pg.Texts()
	for _, n := range starts {
		i := &v.writes[n].Instance
		iid.UUID(i.ID)
		name.Text(i.Saga)
		key.Text(i.Key)
		version.Int(i.StateVersion)
		state.Bytes(i.State)
		v.json(timeouts, i.Pending, len(i.Pending) == 0)
		v.json(originator, i.Originator, i.Originator == saga.Originator{})
	}
	b.Queue(v.store.sql.Get("start"), iid, name, key, version, state, timeouts, originator).Query(v.collectStarts)
}

func (v *Save) collectStarts(rows pgx.Rows) error {
	for rows.Next() {
		v.won[v.starts[pg.CurrentRow(rows).UUID(0)]] = true
	}
	return rows.Err()
}

// QueueChanges queues the compare, the updates and the deletes.
func (v *Save) QueueChanges(b *pgx.Batch) {
	n, iid, version, op := pg.Ints(), pg.UUIDs(), pg.BigInts(), pg.Ints()
	stateVersion, state, timeouts := pg.Ints(), pg.Texts(), pg.Texts()
	for at, w := range v.writes {
		i := &w.Instance
		expected, code := i.Version, int(w.Op)
		switch w.Op {
		case Start:
			continue
		case StartAndComplete: // inserted a statement ago, when it won
			expected, code = 1, int(Complete)
		}
		n.Int(at)
		iid.UUID(i.ID)
		version.BigInt(expected)
		op.Int(code)
		stateVersion.Int(i.StateVersion)
		if w.Op == Update {
			state.Bytes(i.State)
			v.json(timeouts, i.Pending, len(i.Pending) == 0)
		} else {
			state.Null()
			timeouts.Null()
		}
	}
	if n.Len() == 0 {
		return
	}
	b.Queue(v.store.sql.Get("save"), n, iid, version, op, stateVersion, state, timeouts).Query(v.collectChanges)
}

func (v *Save) collectChanges(rows pgx.Rows) error {
	var winners []int32
	for rows.Next() {
		if err := rows.Scan(&winners, nil); err != nil {
			return err
		}
	}
	for _, n := range winners {
		v.won[n] = true
	}
	return rows.Err()
}

// Err is the first column that could not be encoded. Nothing must be sent then.
func (v *Save) Err() error { return v.err }

func (v *Save) json(column *pg.Array, value any, null bool) {
	if null {
		column.Null()
		return
	}
	text, err := json.Marshal(value)
	if err != nil && v.err == nil {
		v.err = fmt.Errorf("save saga instances: %w", err)
	}
	column.Bytes(text)
}

// Save saves writes in one round trip and tells which of them won. It does not end the transaction.
func (s *Store) Save(ctx context.Context, tx Sender, writes []Write) ([]bool, error) {
	v := s.NewSave(writes)
	b := &pgx.Batch{}
	v.QueueStarts(b)
	v.QueueChanges(b)
	if v.err != nil || b.Len() == 0 {
		return v.won, v.err
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("save %d saga instances: %w", len(writes), err)
	}
	return v.won, nil
}
