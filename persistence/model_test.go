package persistence_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// Three transactions take turns at loading, saving and ending, in random batches on few keys. A model that applies
// only committed batches, one at a time, predicts the result of each load and the winners of each save, and after
// every commit the table must equal the model.
func TestInterleavedBatchesAreAsOneAtATime(t *testing.T) {
	t.Parallel()
	db := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{T: rt, ctx: t.Context(), db: db, alive: map[string]life{}}
		for n := range w.actors {
			w.actors[n] = &actor{world: w, name: string(rune('A' + n))}
		}
		defer w.clear()
		for range rapid.IntRange(5, 60).Draw(rt, "turns") {
			w.actors[w.draw(len(w.actors))].turn()
		}
		for _, a := range w.actors {
			for a.tx != nil {
				a.turn()
			}
		}
	})
}

// world is the model, and the actors that use the table.
type world struct {
	*rapid.T
	ctx    context.Context
	db     database
	actors [3]*actor
	alive  map[string]life // the committed instances, by key
	past   []saga.ID
	serial int
}

type life struct {
	ID      saga.ID
	Version int64
	State   string
}

// actor runs one transaction after the other. holds are the instances whose rows it has locked, shares the instances
// that it has checked, as others may too; touched are the keys that it started, changed or completed: starts of these
// keys wait for its end.
type actor struct {
	*world
	name    string
	tx      pgx.Tx
	found   map[string]persistence.Found
	saved   bool
	holds   map[saga.ID]bool
	shares  map[saga.ID]bool
	touched map[string]bool
	writes  []persistence.Write // the writes that won
}

func (w *world) draw(n int) int { return rapid.IntRange(0, n-1).Draw(w.T, "choice") }

func (w *world) clear() {
	ctx := context.WithoutCancel(w.ctx)
	for _, a := range w.actors {
		if a.tx != nil {
			_ = a.tx.Rollback(ctx)
		}
	}
	if _, err := w.db.Exec(ctx, w.db.render("DELETE FROM :schema.saga")); err != nil {
		w.Error(err)
	}
}

func (a *actor) turn() {
	switch {
	case a.tx == nil:
		a.load()
	case !a.saved && a.draw(8) > 0:
		a.save()
	case a.saved && a.draw(4) > 0:
		a.commit()
	default:
		a.Logf("%s rolls back", a.name)
		a.end(a.tx.Rollback(a.ctx))
	}
}

func (a *actor) end(err error) {
	if err != nil {
		a.Fatalf("%s ends: %v", a.name, err)
	}
	*a = actor{world: a.world, name: a.name}
}

// held reports whether another actor has locked the row of an instance. A shared lock does not count for a check.
func (a *actor) held(id saga.ID, check bool) bool {
	return slices.ContainsFunc(a.actors[:], func(b *actor) bool {
		return b != a && (b.holds[id] || b.shares[id] && !check)
	})
}

func (a *actor) load() {
	var refs []persistence.Ref
	var want []persistence.Status
	a.holds, a.shares = map[saga.ID]bool{}, map[saga.ID]bool{}
	a.touched, a.found = map[string]bool{}, map[string]persistence.Found{}
	for _, k := range []string{"a", "b", "c", "d"} {
		if a.draw(3) == 0 {
			continue
		}
		ref, status := persistence.Ref{Saga: "order", Key: k, Lock: a.draw(2) == 0}, persistence.Absent
		if i, ok := a.alive[k]; ok {
			if status = persistence.Loaded; ref.Lock && a.held(i.ID, false) {
				status = persistence.Busy
			}
			if a.draw(2) == 0 {
				ref.Key, ref.ID = "", i.ID
			}
			a.holds[i.ID] = ref.Lock && status == persistence.Loaded
		}
		refs, want = append(refs, ref), append(want, status)
	}
	for _, id := range a.past { // a completed instance is not found, even if its key has started again
		refs, want = append(refs, persistence.Ref{ID: id, Lock: true}), append(want, persistence.Absent)
	}
	a.Logf("%s loads %+v", a.name, refs)
	var err error
	if a.tx, err = a.db.BeginTx(a.ctx, pg.ReadCommitted); err != nil {
		a.Fatal(err)
	}
	found, err := a.db.store.Load(a.ctx, a.tx, refs)
	if err != nil {
		a.Fatal(err)
	}
	for n, f := range found {
		a.compare(refs[n], f, want[n])
	}
}

func (a *actor) compare(ref persistence.Ref, f persistence.Found, want persistence.Status) {
	i := f.Instance
	switch {
	case f.Status != want || f.Faulty != nil:
		a.Fatalf("%s finds %+v %v, %v; want %v", a.name, ref, f.Status, f.Faulty, want)
	case want == persistence.Loaded && a.alive[i.Key] != (life{i.ID, i.Version, string(i.State)}):
		a.Fatalf("%s loads %+v, want %+v", a.name, i, a.alive[i.Key])
	case want != persistence.Absent:
		a.found[i.Key] = f
	case ref.ID.IsZero():
		a.found[ref.Key] = f
	}
}

func (a *actor) save() {
	writes := a.decide()
	for _, w := range writes {
		if w.Op >= persistence.Start {
			a.settle(w.Instance.Key)
		}
	}
	var want []bool
	for _, w := range writes {
		want = append(want, a.predict(w))
	}
	a.Logf("%s saves %s", a.name, tell(writes))
	// The save must not wait for an open transaction.
	ctx, cancel := context.WithTimeout(a.ctx, pgdev.Patience(20*time.Second))
	defer cancel()
	won, err := a.db.store.Save(ctx, a.tx, writes)
	if err != nil {
		a.Fatalf("%s saves: %v", a.name, err)
	}
	if !slices.Equal(won, want) {
		a.Fatalf("%s saves %s: won %v, want %v", a.name, tell(writes), won, want)
	}
	a.saved = true
	for n, w := range writes {
		if won[n] {
			a.writes = append(a.writes, w)
			if w.Op == persistence.Check {
				a.shares[w.Instance.ID] = true
			} else {
				a.holds[w.Instance.ID] = true
			}
			a.touched[w.Instance.Key] = a.touched[w.Instance.Key] || w.Op != persistence.Check
		}
	}
}

// decide draws an operation for each instance that was found, and starts instances for absent keys and for living ones.
func (a *actor) decide() (writes []persistence.Write) {
	for _, k := range []string{"a", "b", "c", "d"} {
		f, ok := a.found[k]
		if ok && f.Status == persistence.Loaded {
			if op := persistence.Op(a.draw(4)); op <= persistence.Complete {
				f.Instance.State = a.state()
				writes = append(writes, write(op, f))
			}
		}
		if chance := a.draw(6); ok && f.Status == persistence.Absent && chance > 1 || chance == 0 {
			i := order(k, a.serial+1)
			i.State = a.state()
			writes = append(writes, persistence.Write{Op: persistence.Start + persistence.Op(a.draw(4)/3), Instance: i})
		}
	}
	return rapid.Permutation(writes).Draw(a.T, "order")
}

func (w *world) state() []byte {
	w.serial++
	return fmt.Appendf(nil, `{"n":%d}`, w.serial)
}

// settle ends the transactions that a start of key would wait for.
func (a *actor) settle(key string) {
	for _, b := range a.actors {
		if b != a && b.touched[key] {
			if a.draw(2) == 0 {
				b.commit()
			} else {
				a.Logf("%s rolls back", b.name)
				b.end(b.tx.Rollback(b.ctx))
			}
		}
	}
}

func (a *actor) predict(w persistence.Write) bool {
	i := w.Instance
	now, alive := a.alive[i.Key]
	if w.Op >= persistence.Start {
		return !alive
	}
	return alive && now.ID == i.ID && now.Version == i.Version && !a.held(i.ID, w.Op == persistence.Check)
}

// commit applies the batch to the model, where it must be possible to apply the writes one by one.
func (a *actor) commit() {
	a.Logf("%s commits %s", a.name, tell(a.writes))
	for _, w := range a.writes {
		i := w.Instance
		now, alive := a.alive[i.Key]
		switch {
		case w.Op >= persistence.Start && alive:
			a.Fatalf("order/%s was started beside %+v", i.Key, now)
		case w.Op < persistence.Start && (now.ID != i.ID || now.Version != i.Version):
			a.Fatalf("order/%s was saved from version %d of %s, and is %+v", i.Key, i.Version, i.ID, now)
		}
		switch w.Op {
		case persistence.Start:
			a.alive[i.Key] = life{i.ID, 1, string(i.State)}
		case persistence.Update:
			a.alive[i.Key] = life{i.ID, now.Version + 1, string(i.State)}
		case persistence.Complete:
			delete(a.alive, i.Key)
			a.past = append(a.past, i.ID)
		}
	}
	a.end(a.tx.Commit(a.ctx))
	a.compareTable()
}

func (w *world) compareTable() {
	rows, err := w.db.Query(w.ctx, w.db.render("SELECT key, iid, version, state::text FROM :schema.saga"))
	if err != nil {
		w.Fatal(err)
	}
	table := map[string]life{}
	var k string
	var i life
	_, err = pgx.ForEachRow(rows, []any{&k, (*[16]byte)(&i.ID), &i.Version, &i.State}, func() error {
		table[k] = i
		return nil
	})
	if diff := cmp.Diff(w.alive, table); err != nil || diff != "" {
		w.Fatalf("after the commit: %v, table (-want +got):\n%s", err, diff)
	}
}

func tell(writes []persistence.Write) (story string) {
	ops := [...]string{"check", "update", "complete", "start", "start and complete"}
	for _, w := range writes {
		story += fmt.Sprintf("[%s %s v%d %s]", ops[w.Op], w.Instance.Key, w.Instance.Version, w.Instance.State)
	}
	return story
}
