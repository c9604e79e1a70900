package persistence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Op is the operation of a save on an instance.
type Op uint8

// An instance that was read and not changed is still checked, because the batch has decided on the basis of its
// state. An instance that starts and completes in one batch is still inserted, so that the unique constraint applies.
const (
	Check Op = iota
	Update
	Complete
	Start
	StartAndComplete
)

// Write is one instance to save. Instance.Version is the version that was loaded, and Row its place; a start has
// neither.
type Write struct {
	Op       Op
	Instance saga.Instance
	Row      Row
	Page     saga.ID // page of the history that records this write; zero leaves the column unchanged
}

// Save is a save in preparation. The caller queues its two statements into a pipeline, with no statement after the
// second that may wait, sends the pipeline, and then calls Won. A Save belongs to one goroutine.
type Save struct {
	store  *Store
	writes []Write
	won    []bool
	starts map[saga.ID]int
	err    error
}

// NewSave prepares a save of writes. Each instance may occur once.
func (s *Store) NewSave(writes []Write) *Save {
	return &Save{store: s, writes: writes, won: make([]bool, len(writes)), starts: map[saga.ID]int{}}
}

// Won reports whether the i-th write is part of the transaction. Call it after the pipeline was sent.
func (v *Save) Won(i int) bool { return v.won[i] }

// QueueStarts queues the inserts. They may wait for a lock; no statement before them in the transaction may do so.
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
	state, timeouts, originator, page := pg.JSONs(), pg.JSONs(), pg.JSONs(), pg.UUIDs()
	for _, n := range starts {
		i := &v.writes[n].Instance
		iid.UUID(i.ID)
		name.Text(i.Saga)
		key.Text(i.Key)
		version.Int(i.StateVersion)
		state.Bytes(i.State)
		v.json(timeouts, i.Pending, len(i.Pending) == 0)
		v.json(originator, i.Originator, i.Originator == saga.Originator{})
		addPage(page, v.writes[n].Page)
	}
	b.Queue(v.store.sql.Get("start"), iid, name, key, version, state, timeouts, originator, page).
		Query(v.collectStarts)
}

func (v *Save) collectStarts(rows pgx.Rows) error {
	for rows.Next() {
		v.won[v.starts[pg.CurrentRow(rows).UUID(0)]] = true
	}
	return rows.Err()
}

// Sure reports whether every write is certain to win, because the transaction has locked the rows since the load.
// Then statements that depend on that may follow QueueChanges in the same pipeline.
func (v *Save) Sure() bool {
	for n := range v.writes {
		if w := &v.writes[n]; w.Op >= Start || !w.Row.Locked {
			return false
		}
	}
	return true
}

// QueueChanges queues the comparisons, the updates and the deletes.
func (v *Save) QueueChanges(b *pgx.Batch) {
	v.queueLocked(b)
	v.queueChecked(b)
	v.queueCompared(b)
	v.queueEnded(b)
}

// changes are the columns that both saving statements use.
type changes struct {
	tid, iid, version, op, stateVersion, state, timeouts, page *pg.Array
}

func newChanges() changes {
	return changes{pg.TIDs(), pg.UUIDs(), pg.BigInts(), pg.Ints(), pg.Ints(), pg.JSONs(), pg.JSONs(), pg.UUIDs()}
}

func (v *Save) add(c changes, w *Write) {
	i := &w.Instance
	c.tid.TID(w.Row.tid)
	c.iid.UUID(i.ID)
	c.version.BigInt(i.Version)
	c.op.Int(int(w.Op))
	c.stateVersion.Int(i.StateVersion)
	addPage(c.page, w.Page)
	if w.Op == Update {
		c.state.Bytes(i.State)
		v.json(c.timeouts, i.Pending, len(i.Pending) == 0)
	} else {
		c.state.Null()
		c.timeouts.Null()
	}
}

func addPage(pages *pg.Array, page saga.ID) {
	if page.IsZero() {
		pages.Null()
		return
	}
	pages.UUID(page)
}

func (v *Save) queueLocked(b *pgx.Batch) {
	c := newChanges()
	for n := range v.writes {
		w := &v.writes[n]
		if w.Op >= Start || !w.Row.Locked {
			continue
		}
		v.won[n] = true
		if w.Op != Check {
			v.add(c, w)
		}
	}
	if c.tid.Len() > 0 {
		b.Queue(v.store.sql.Get("save_locked"), c.tid, c.iid, c.version, c.op, c.stateVersion, c.state, c.timeouts,
			c.page)
	}
}

// queueChecked compares instances that were read without a lock and have not changed.
func (v *Save) queueChecked(b *pgx.Batch) {
	at, tid, iid, version := pg.Ints(), pg.TIDs(), pg.UUIDs(), pg.BigInts()
	for n := range v.writes {
		if w := &v.writes[n]; w.Op == Check && !w.Row.Locked {
			at.Int(n)
			tid.TID(w.Row.tid)
			iid.UUID(w.Instance.ID)
			version.BigInt(w.Instance.Version)
		}
	}
	if at.Len() > 0 {
		b.Queue(v.store.sql.Get("check"), at, tid, iid, version).Query(v.collectChecked)
	}
}

func (v *Save) collectChecked(rows pgx.Rows) error {
	for rows.Next() {
		v.won[pg.CurrentRow(rows).Int(0)] = true
	}
	return rows.Err()
}

func (v *Save) queueCompared(b *pgx.Batch) {
	at, c := pg.Ints(), newChanges()
	for n := range v.writes {
		if w := &v.writes[n]; (w.Op == Update || w.Op == Complete) && !w.Row.Locked {
			at.Int(n)
			v.add(c, w)
		}
	}
	if at.Len() > 0 {
		b.Queue(v.store.sql.Get("save"), at, c.tid, c.iid, c.version, c.op, c.stateVersion, c.state, c.timeouts,
			c.page).Query(v.collectWinners)
	}
}

// queueEnded deletes instances that started and completed in this batch. If the start lost, there is no row to delete.
func (v *Save) queueEnded(b *pgx.Batch) {
	iid := pg.UUIDs()
	for n := range v.writes {
		if w := &v.writes[n]; w.Op == StartAndComplete {
			iid.UUID(w.Instance.ID)
		}
	}
	if iid.Len() > 0 {
		b.Queue(v.store.sql.Get("end_started"), iid)
	}
}

func (v *Save) collectWinners(rows pgx.Rows) error {
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

// Err returns the error of the first column that could not be encoded. If it is not nil, do not send the pipeline.
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

// Save saves writes in one round trip and reports for each whether it won. It does not end the transaction.
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
