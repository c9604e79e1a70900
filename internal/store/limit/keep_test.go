package limit_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

func (w *world) held(tx limit.Sender, slots ...limit.Slot) []bool {
	w.t.Helper()
	held, err := w.store.Held(w.t.Context(), tx, slots)
	if err != nil {
		w.t.Fatal(err)
	}
	return held
}

func (w *world) renew(slots ...limit.Slot) (lost, busy []limit.Slot) {
	w.t.Helper()
	lost, busy, err := w.store.Renew(pgdev.Deadline(w.t), w.pool, slots, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return lost, busy
}

// The slot of a holder that was paused past the end of its lease belongs to another holder by now.
func TestZombieNeitherFinishesNorFrees(t *testing.T) {
	w := open(t)
	w.set(2)
	kept, lost := w.gets("a", 1, 1)[0], w.gets("a", 1, 1)[0]
	w.exec("UPDATE :schema.slot SET expires = clock_timestamp() - interval '1 second' WHERE no = $1", lost.No)
	now := w.gets("b", 1, 1)[0]
	if now.No != lost.No || now.Epoch != lost.Epoch+1 {
		t.Fatalf("b got %+v, and not the slot of %+v", now, lost)
	}
	if gone, busy := w.renew(lost, kept); !slices.Equal(gone, []limit.Slot{lost}) || len(busy) > 0 {
		t.Errorf("renewed: lost %+v, busy %+v", gone, busy)
	}
	tx := w.begin()
	if held := w.held(tx, lost, now, kept); !slices.Equal(held, []bool{false, true, true}) {
		t.Errorf("held: %v", held)
	}
	_ = tx.Rollback(t.Context())
	if r := w.release(lost); r.Slots != 0 {
		t.Errorf("a zombie freed %+v", r)
	}
	w.gets("c", 1, 0)
	// Under its own name, too: the epoch counts.
	w.expire("b")
	w.exec("DELETE FROM :schema.ticket")
	own := w.gets("a", 1, 1)[0]
	if own.No != lost.No || w.held(w.begin(), lost)[0] {
		t.Errorf("%+v is taken for %+v", lost, own)
	}
}

// The result of Held stays true until the transaction ends, even if the lease ends in the meantime.
func TestHeldSlotIsGivenToNobodyUntilTheEnd(t *testing.T) {
	w := open(t)
	w.set(1)
	g, err := w.store.Grant(t.Context(), w.pool,
		limit.Request{Name: "billing", Holder: "a", Want: 1, Lease: 300 * time.Millisecond})
	if err != nil || len(g.Slots) != 1 {
		t.Fatal(g, err)
	}
	tx := w.begin()
	if !w.held(tx, g.Slots[0])[0] {
		t.Fatal("not held")
	}
	for over := false; !over; {
		if err := w.pool.QueryRow(t.Context(),
			w.schema.Render("SELECT expires <= clock_timestamp() FROM :schema.slot")).Scan(&over); err != nil {
			t.Fatal(err)
		}
	}
	w.gets("b", 1, 0)
	b := &pgx.Batch{}
	r := w.store.QueueRelease(b, g.Slots)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil || r.Slots != 1 {
		t.Fatal(r, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.gets("b", 1, 1)
}

// A disabled slot is not granted again when its lease is over, but a different slot is: the old holder must not
// finish.
func TestHolderWhoseTimeIsOverDoesNotFinish(t *testing.T) {
	w := open(t)
	w.set(2)
	slots := w.gets("a", 2, 2)
	w.set(1)
	w.release(slots[0])
	w.gets("b", 1, 0)
	w.expire("a")
	w.gets("b", 1, 1)
	if w.held(w.begin(), slots[1])[0] {
		t.Errorf("two hold slots of a limit of one\n%s", w.story())
	}
	if lost, busy := w.renew(slots[1]); len(lost) != 1 || len(busy) != 0 {
		t.Errorf("renewed a slot whose time is over: lost %+v, busy %+v", lost, busy)
	}
}

func TestHeartbeatWaitsForNobody(t *testing.T) {
	w := open(t)
	w.set(2)
	slots := w.gets("a", 2, 2)
	w.held(w.begin(), slots[1])
	if lost, busy := w.renew(slots...); len(lost) != 0 || !slices.Equal(busy, slots[1:]) {
		t.Errorf("lost %+v, busy %+v", lost, busy)
	}
}

// A release that waited for its own heartbeat finds the row that the heartbeat wrote.
func TestReleaseAfterAHeartbeatThatWasFaster(t *testing.T) {
	w := open(t)
	w.set(1)
	slot := w.gets("a", 1, 1)[0]
	beat, finish := w.begin(), w.begin()
	if lost, busy, err := w.store.Renew(t.Context(), beat, []limit.Slot{slot}, time.Hour); err != nil ||
		len(lost)+len(busy) > 0 {
		t.Fatal(lost, busy, err)
	}
	done := make(chan *limit.Released, 1)
	go func() {
		b := &pgx.Batch{}
		r := w.store.QueueRelease(b, []limit.Slot{slot})
		if err := finish.SendBatch(context.WithoutCancel(t.Context()), b).Close(); err != nil {
			t.Error(err)
		}
		done <- r
	}()
	pgtest.AwaitBlocked(t, w.pool.Pool, finish.Conn())
	if err := beat.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Slots != 1 {
		t.Errorf("released %+v", r)
	}
}

// Heartbeats and finishes in any order, and a limit that changes at the same time: no circle of waits arises. Each
// requests slots that are held at that time, and finds most of them still held: a slot that was released and granted
// again has a new epoch.
func TestNobodyDeadlocks(t *testing.T) {
	w := open(t)
	const slots, rounds = 6, 40
	w.set(slots)
	type actor func(held []limit.Slot, round int) error
	ctx := context.WithoutCancel(t.Context())
	beat := func(held []limit.Slot, _ int) error {
		_, _, err := w.store.Renew(ctx, w.pool, held, time.Hour)
		return err
	}
	var found atomic.Int64
	finish := func(held []limit.Slot, _ int) error {
		return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			ours, err := w.store.Held(ctx, tx, held)
			for _, still := range ours {
				if still {
					found.Add(1)
				}
			}
			b := &pgx.Batch{}
			w.store.QueueRelease(b, held[:min(2, len(held))])
			if err == nil {
				err = tx.SendBatch(ctx, b).Close()
			}
			return err
		})
	}
	backwards := func(held []limit.Slot, round int) error {
		slices.Reverse(held)
		return finish(held, round)
	}
	ask := func(_ []limit.Slot, _ int) error {
		_, err := w.store.Grant(ctx, w.pool, limit.Request{Name: "billing", Holder: "a", Want: slots, Lease: time.Hour})
		return err
	}
	change := func(_ []limit.Slot, round int) error {
		return w.store.Set(ctx, w.pool.Writing(), "billing", slots-round%2)
	}
	leave := func(_ []limit.Slot, round int) error {
		if round%8 < 7 { // so that the others find something
			return nil
		}
		return w.store.ReleaseAll(ctx, w.pool, "a")
	}
	w.gets("a", slots, slots)
	failed := make(chan error, 9)
	actors := []actor{beat, finish, finish, backwards, backwards, ask, ask, change, leave}
	for _, act := range actors {
		go func() {
			var err error
			for round := 0; err == nil && (round < rounds || found.Load() == 0 && round < 100*rounds); round++ {
				var held []limit.Slot
				if held, err = w.slotsOf(ctx, "a"); err == nil {
					err = act(held, round)
				}
			}
			failed <- err
		}()
	}
	for range actors {
		if err := <-failed; err != nil {
			t.Errorf("%v (class %v)", err, pgerr.ClassOf(err))
		}
	}
	if found.Load() == 0 {
		t.Error("those who finish found no slot that was still held")
	}
}

// slotsOf returns the slots that holder has now.
func (w *world) slotsOf(ctx context.Context, holder string) ([]limit.Slot, error) {
	rows, err := w.pool.Query(ctx, w.schema.Render("SELECT s.name, s.no, s.holder, s.epoch FROM :schema.slot s "+
		"WHERE s.holder = $1 ORDER BY s.no"), holder)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[limit.Slot])
}

// Whatever happens to one limit, holders under a different limit neither wait for it nor fail: they use other rows.
func TestLimitsDoNotMeet(t *testing.T) {
	w := open(t)
	w.set(2)
	billing := w.gets("a", 1, 1)
	busy := w.begin() // has changed the limit, and holds a slot of it until its end
	if err := w.store.Set(t.Context(), busy, "billing", 3); err != nil || !w.held(busy, billing[0])[0] {
		t.Fatal("the slot is not held", err)
	}
	other := w.begin()
	if _, err := other.Exec(t.Context(), "SET LOCAL lock_timeout = '1s'"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Set(t.Context(), other, "mail", 1); err != nil {
		t.Fatal(err)
	}
	g, err := w.store.Grant(t.Context(), other, limit.Request{Name: "mail", Holder: "a", Want: 1, Lease: time.Hour})
	if err != nil || len(g.Slots) != 1 {
		t.Fatal(g, err)
	}
	if lost, passed, err := w.store.Renew(t.Context(), other, g.Slots, time.Hour); err != nil ||
		len(lost)+len(passed) > 0 || !w.held(other, g.Slots[0])[0] {
		t.Fatal(lost, passed, err)
	}
	b := &pgx.Batch{}
	r := w.store.QueueRelease(b, g.Slots)
	if err := other.SendBatch(t.Context(), b).Close(); err != nil || r.Slots != 1 {
		t.Fatal(r, err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A process that ends releases its slots without waiting for the end of their lease.
func TestReleaseAllGivesEverythingBack(t *testing.T) {
	w := open(t)
	w.set(2)
	if err := w.store.Set(t.Context(), w.pool, "mail", 1); err != nil {
		t.Fatal(err)
	}
	mine := w.gets("a", 1, 1)
	other := w.gets("b", 1, 1)
	w.gets("a", 1, 0)
	w.gets("c", 1, 0)
	heard := w.listen()
	if err := w.store.ReleaseAll(t.Context(), w.pool, "a"); err != nil {
		t.Fatal(err)
	}
	if payload := heard(); payload != limit.CallPrefix+"billing" {
		t.Errorf("heard %q", payload)
	}
	if held := w.held(w.pool, mine[0], other[0]); !slices.Equal(held, []bool{false, true}) {
		t.Errorf("held: %v", held)
	}
	w.gets("c", 1, 1)
}

func TestPruneDropsTicketsThatNobodyComesBackFor(t *testing.T) {
	w := open(t)
	w.set(1)
	w.gets("a", 1, 1)
	for _, who := range []string{"b", "c", "d"} {
		w.gets(who, 1, 0)
	}
	w.expire("b")
	w.expire("c")
	for _, want := range []int64{1, 1, 0} {
		if n, err := w.store.Prune(t.Context(), w.pool, 500*time.Millisecond, 1); err != nil || n != want {
			t.Errorf("pruned %d, %v, want %d", n, err, want)
		}
	}
	if i := w.info(); i.Waiting != 1 {
		t.Errorf("it stands at %+v", i)
	}
}
