package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

// world is a migrated schema of a test's own.
type world struct {
	t      *testing.T
	pool   *pg.Pool // as the engine uses it
	schema pg.Schema
	store  *lease.Store
}

func open(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := lease.New(schema)
	return &world{t: t, pool: pg.Committed(pool), schema: schema, store: store}
}

func (w *world) acquire(holder string, ttl time.Duration) (lease.Term, bool) {
	w.t.Helper()
	term, ok, err := w.store.Acquire(w.t.Context(), w.pool, lease.Bid{Name: "sweep", Holder: holder, Lease: ttl})
	if err != nil {
		w.t.Fatal(err)
	}
	return term, ok
}

// mustAcquire is acquire for a lease that is free.
func (w *world) mustAcquire(holder string) lease.Term {
	w.t.Helper()
	term, ok := w.acquire(holder, time.Hour)
	if !ok {
		w.t.Fatalf("%s did not get a free lease: %+v", holder, w.list())
	}
	return term
}

func (w *world) list() []lease.Info {
	w.t.Helper()
	list, err := w.store.List(w.t.Context(), w.pool, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// expire ends the term of the lease now, as time would.
func (w *world) expire() {
	w.t.Helper()
	sql := w.schema.Render("UPDATE :schema.lease SET expires = clock_timestamp() - interval '1 second'")
	if _, err := w.pool.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) renew(t lease.Term) lease.Renewal {
	w.t.Helper()
	answer, err := w.store.Renew(w.t.Context(), w.pool, t, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func (w *world) release(t lease.Term) bool {
	w.t.Helper()
	ok, err := w.store.Release(w.t.Context(), w.pool, t)
	if err != nil {
		w.t.Fatal(err)
	}
	return ok
}

func (w *world) begin() pgx.Tx {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) })
	return tx
}

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	w := open(t)
	pgtest.Statements(t, w.pool.Pool, w.schema, "statements.sql")
}

func TestStatementsReachTheirRowsByIndex(t *testing.T) {
	w := open(t)
	pgtest.Probes{
		SQL: lease.Statements(w.store),
		Statements: map[string][]string{
			"acquire": {"n7", "b", "1000000", "7", "1"}, "renew": {"n7", "a", "7", "1000000"},
			"release": {"n7", "a", "7", "c"},
			"resign":  {"n7", "c"}, "guard": {"n7", "a", "7"}, "under": {"n7", "n70", "10"},
		},
		// Postgres rightly reads a table of a few rows as a whole
		Settings: []string{"SET LOCAL enable_seqscan = off"},
		Fill: `INSERT INTO :schema.lease (name, holder, epoch, acquired, renewed, expires)
			SELECT 'n' || n, 'a', n, now(), now(), now() + interval '1 hour' FROM generate_series(1, 3000) n`,
		MaxRows: 2,
	}.Check(t, pgtest.Pool(t), w.schema)
}

// A lease needs one table of the schema, and the two functions that its statements call.
func TestALeaseNeedsNoOtherTable(t *testing.T) {
	w := open(t)
	drop := `DO $$ DECLARE other regclass; BEGIN
		FOR other IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relname <> 'lease' AND relnamespace = (
			SELECT relnamespace FROM pg_class WHERE oid = ':schema.lease'::regclass)
		LOOP EXECUTE 'DROP TABLE ' || other || ' CASCADE'; END LOOP; END $$`
	if _, err := pgtest.Pool(t).Exec(t.Context(), w.schema.Render(drop)); err != nil {
		t.Fatal(err)
	}
	a := w.mustAcquire("a")
	write := w.begin()
	if err := errors.Join(w.store.Guard(t.Context(), write, a), write.Commit(t.Context())); err != nil {
		t.Error(err)
	}
	if ok, err := w.store.Resign(t.Context(), w.pool, "sweep"); !ok || err != nil {
		t.Errorf("resign: %t, %v", ok, err)
	}
	if answer := w.renew(a); answer != lease.Resigning || !w.release(a) {
		t.Errorf("the renewal of a term that is to end: %v; or it was not released", answer)
	}
	if found, err := w.store.Under(t.Context(), w.pool, "sweep"); err != nil || len(found) != 1 || len(w.list()) != 1 {
		t.Errorf("the leases: %+v, %v", found, err)
	}
	w.mustAcquire("b")
}

func TestOneOfManyBiddersWins(t *testing.T) {
	w := open(t)
	const rounds, bidders = 12, 8
	for round := range rounds {
		var (
			all  sync.WaitGroup
			mu   sync.Mutex
			won  []lease.Term
			gate = make(chan struct{})
		)
		for n := range bidders {
			all.Go(func() {
				<-gate
				term, ok, err := w.store.Acquire(t.Context(), w.pool.Writing(),
					lease.Bid{Name: "sweep", Holder: string(rune('a' + n)), Lease: time.Hour})
				if err != nil {
					t.Error(err)
				}
				if ok {
					mu.Lock()
					won = append(won, term)
					mu.Unlock()
				}
			})
		}
		close(gate)
		all.Wait()
		if len(won) != 1 || won[0].Epoch != int64(round+1) {
			t.Fatalf("round %d: won by %+v, want one bidder with epoch %d", round, won, round+1)
		}
		if round%2 == 0 {
			w.expire()
		} else if !w.release(won[0]) {
			t.Fatalf("round %d: the winner's release was refused", round)
		}
	}
	w.wantBidLostBesideAnother()
}

// wantBidLostBesideAnother bids for a free lease while the bid of a second process is not committed.
func (w *world) wantBidLostBesideAnother() {
	w.t.Helper()
	tx, err := w.pool.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(w.t.Context()))
	if _, ok, err := w.store.Acquire(w.t.Context(), tx, lease.Bid{Name: "sweep", Holder: "first",
		Lease: time.Hour}); !ok || err != nil {
		w.t.Fatalf("the first bid: %t, %v", ok, err)
	}
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		if _, ok, err := w.store.Acquire(w.t.Context(), w.pool.Writing(), lease.Bid{Name: "sweep", Holder: "second",
			Lease: time.Hour}); ok || err != nil {
			w.t.Errorf("the second bid won: %t, %v", ok, err)
		}
	}()
	select {
	case <-lost:
	case <-time.After(pgdev.Patience(2 * time.Second)): // it waits for the first one, and must lose all the same
	}
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	<-lost
}

// If a release deleted the row, the epochs would begin again, and the first holder, after a pause, would take the new
// term for its own.
func TestOldHolderIsNotTakenForTheNewOne(t *testing.T) {
	w := open(t)
	a := w.mustAcquire("a")
	w.expire() // a is paused
	b := w.mustAcquire("b")
	if !w.release(b) {
		t.Fatal("b could not release its lease")
	}
	c := w.mustAcquire("c")
	if !(a.Epoch < b.Epoch && b.Epoch < c.Epoch) {
		t.Errorf("epochs %d, %d, %d", a.Epoch, b.Epoch, c.Epoch)
	}
	if w.renew(a) != lease.Lost || w.release(a) {
		t.Error("a holder of long ago renewed or released what is another's")
	}
	if err := w.store.Guard(t.Context(), w.begin(), a); !errors.Is(err, lease.ErrFenced) {
		t.Errorf("its guarded write: %v, want ErrFenced", err)
	}
	if list := w.list(); len(list) != 1 || list[0].Term != c || !list[0].Held {
		t.Errorf("the lease stands at %+v", list)
	}
	// Also under its own name: the epoch is compared, not only the holder.
	w.expire()
	again := w.mustAcquire("a")
	if w.renew(a) != lease.Lost || w.release(a) || w.renew(again) != lease.Renewed {
		t.Error("an old term of the holder's own was taken for the new one")
	}
}

func TestTermEndsByTheDatabasesClock(t *testing.T) {
	w := open(t)
	a, ok := w.acquire("a", 100*time.Millisecond)
	if !ok {
		t.Fatal("a did not get the lease")
	}
	var b lease.Term
	within := pgdev.Deadline(t)
	for ok = false; !ok; b, ok = w.acquire("b", time.Hour) {
		if within.Err() != nil {
			t.Fatal("it never expired")
		}
	}
	list := w.list()
	if w.renew(a) != lease.Lost || b.Epoch != a.Epoch+1 || list[0].Holder != "b" {
		t.Errorf("%+v after %+v: %+v", b, a, list)
	}
	if _, err := w.store.Renew(t.Context(), w.pool, b, time.Minute); err != nil {
		t.Fatal(err)
	}
	// The statement reads the clock for each of the two times.
	if now := w.list()[0]; now.Expires.Sub(now.Renewed).Round(time.Second) != time.Minute {
		t.Errorf("renewed for a minute: %+v", now)
	}
	w.expire()
	if w.renew(b) != lease.Lost {
		t.Error("a term that had expired was renewed")
	}
}

// While a guarded write is open no new term begins, so that the two cannot both commit; and the write does not make
// its own renewal wait.
func TestOfTwoHoldersOneCommitsItsWrite(t *testing.T) {
	w := open(t)
	a := w.mustAcquire("a")
	write := w.begin()
	if err := w.store.Guard(t.Context(), write, a); err != nil {
		t.Fatal(err)
	}
	if w.renew(a) != lease.Renewed {
		t.Error("the renewal was refused beside the holder's own write")
	}
	w.expire()
	if b, ok := w.acquire("b", time.Hour); ok {
		t.Fatalf("the term %+v began while the last one's write was open", b)
	}
	if err := write.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := w.mustAcquire("b")
	if err := w.store.Guard(t.Context(), w.begin(), a); !errors.Is(err, lease.ErrFenced) {
		t.Errorf("the write of the old holder: %v, want ErrFenced", err)
	}
	tx := w.begin()
	if err := w.store.Guard(t.Context(), tx, b); err != nil {
		t.Errorf("the write of the new holder: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

// A term that has expired, and has no successor, is still the only writer.
func TestExpiredTermMayWriteUntilItIsFollowed(t *testing.T) {
	w := open(t)
	a := w.mustAcquire("a")
	w.expire()
	if err := w.store.Guard(t.Context(), w.begin(), a); err != nil {
		t.Error(err)
	}
}

func TestResignNamesTheTerm(t *testing.T) {
	w := open(t)
	if ok, err := w.store.Resign(t.Context(), w.pool, "sweep"); ok || err != nil {
		t.Errorf("nobody was asked to resign: %t, %v", ok, err)
	}
	a := w.mustAcquire("a")
	if ok, err := w.store.Resign(t.Context(), w.pool, "sweep"); !ok || err != nil {
		t.Fatalf("resign: %t, %v", ok, err)
	}
	if list := w.list(); w.renew(a) != lease.Resigning || !list[0].Resigning {
		t.Errorf("the holder does not learn of it: %+v", list)
	}
	w.release(a)
	if b := w.mustAcquire("b"); w.renew(b) != lease.Renewed {
		t.Error("the next term met the request that was for the last")
	}
}

// The payload of the notification is meant for Wake.
func TestReleaseCallsThoseWhoWait(t *testing.T) {
	w := open(t)
	conn := pgdev.Connect(t)
	if _, err := conn.Exec(t.Context(), "LISTEN "+pgx.Identifier{w.schema.Channel()}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	a := w.mustAcquire("a")
	if ok, err := w.store.Resign(t.Context(), w.pool, "sweep"); !ok || err != nil {
		t.Fatalf("resign: %t, %v", ok, err)
	}
	w.release(a)
	w.release(a) // the second time it must not notify
	w.release(w.mustAcquire("b"))
	for n := range 3 {
		got, err := conn.WaitForNotification(t.Context())
		if err != nil || got.Payload != lease.WakePrefix+"sweep" {
			t.Fatalf("notification %d: %+v, %v", n, got, err)
		}
	}
}
