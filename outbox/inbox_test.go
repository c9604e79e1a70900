package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// border is a schema with its rings.
type border struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	store  *outbox.Store
	rings  *ring.Store
}

func openBorder(t *testing.T) *border {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := outbox.New(schema)
	return &border{T: t, pool: pool, schema: schema, store: store, rings: ring.New(schema)}
}

func (b *border) exec(sql string, args ...any) {
	b.Helper()
	pgtest.Exec(b, b.pool, b.schema.Render(sql), args...)
}

// turn rotates a ring as if it were due.
func (b *border) turn(of ring.Name) {
	b.Helper()
	b.exec(`UPDATE :schema.ring SET since = now() - interval '1 year' WHERE name = $1`, string(of))
	if turned, err := b.rings.Rotate(b.Context(), b.pool, of); err != nil || !turned {
		b.Fatalf("turn the %s: %v, %v", of, turned, err)
	}
}

// receive claims ids in tx and returns the outcome of each.
func (b *border) receive(ctx context.Context, tx pgx.Tx, source string, given ...outbox.InboxEntry) ([]dedup.Outcome,
	error) {
	r := b.store.NewInboxClaim(source, given)
	pipeline := &pgx.Batch{}
	r.Queue(pipeline)
	if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, err
	}
	if r.Unsure() {
		pipeline = &pgx.Batch{}
		r.Sums(pipeline)
		if err := tx.SendBatch(ctx, pipeline).Close(); err != nil {
			return nil, err
		}
	}
	outcomes := make([]dedup.Outcome, len(given))
	for n := range given {
		outcomes[n] = r.Outcome(n)
	}
	return outcomes, nil
}

// wantReceived claims ids in a transaction of its own, which commits.
func (b *border) wantReceived(source string, given []outbox.InboxEntry, want ...dedup.Outcome) {
	b.Helper()
	tx := begin(b.T, b.pool)
	got, err := b.receive(b.Context(), tx, source, given...)
	if err != nil {
		b.Fatal(err)
	}
	commit(b.T, tx)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("from %s: %v, want %v", source, got, want)
	}
}

func received(n byte, sum int64) outbox.InboxEntry {
	return outbox.InboxEntry{ID: saga.ID{n}, Sum: sum}
}

func TestInboxKnowsWhatCame(t *testing.T) {
	b := openBorder(t)
	b.wantReceived("a", []outbox.InboxEntry{received(2, 20), received(1, 10), received(2, 20), received(1, 11)},
		dedup.Fresh, dedup.Fresh, dedup.Duplicate, dedup.Conflict)
	b.wantReceived("b", []outbox.InboxEntry{received(1, 10)}, dedup.Fresh)
	b.wantReceived("a", []outbox.InboxEntry{received(1, 11), received(3, 30), received(1, 10), received(3, 30)},
		dedup.Conflict, dedup.Fresh, dedup.Duplicate, dedup.Duplicate)
	b.wantReceived("a", nil)
}

// Ids survive three rotations, in any slot, and are removed by the fourth.
func TestIDsSurviveTurnsForTheirTime(t *testing.T) {
	b := openBorder(t)
	for n := range 8 {
		b.wantReceived("a", []outbox.InboxEntry{received(byte(n), 1)}, dedup.Fresh)
		for back := range min(n, 3) {
			b.wantReceived("a", []outbox.InboxEntry{received(byte(n-back-1), 1)}, dedup.Duplicate)
		}
		b.turn(ring.Inbox)
	}
	b.wantReceived("a", []outbox.InboxEntry{received(4, 1), received(5, 2), received(6, 1), received(7, 1)},
		dedup.Fresh, dedup.Conflict, dedup.Duplicate, dedup.Duplicate)
}

func TestRingTurnsWhenItIsDue(t *testing.T) {
	b := openBorder(t)
	if turned, err := b.rings.Rotate(t.Context(), b.pool, ring.Inbox); turned || err != nil {
		t.Errorf("a new ring turned: %v, %v", turned, err)
	}
	if err := b.rings.SetKeep(t.Context(), b.pool, ring.Inbox, 3*time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := b.rings.KeepAtLeast(t.Context(), b.pool, ring.Inbox, time.Hour); err != nil {
		t.Fatal(err)
	}
	for ago, want := range map[string]bool{"59 minutes": false, "61 minutes": true} {
		b.exec(`UPDATE :schema.ring SET since = now() - $1::text::interval WHERE name = 'inbox'`, ago)
		if turned, err := b.rings.Rotate(t.Context(), b.pool, ring.Inbox); turned != want || err != nil {
			t.Errorf("%s after the last turn it turned %v: %v", ago, turned, err)
		}
	}
	if err := b.rings.KeepAtLeast(t.Context(), b.pool, ring.Inbox, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	rings, err := b.rings.List(t.Context(), b.pool)
	if err != nil || len(rings) != 3 || rings[1].Ring != ring.Inbox || rings[1].Slot != 1 ||
		rings[1].Keep != 30*24*time.Hour || rings[2].Slot != 0 || time.Since(rings[1].Since) > time.Hour {
		t.Errorf("%+v, %v", rings, err)
	}
	if err := b.rings.SetKeep(t.Context(), b.pool, ring.Inbox, time.Second); err == nil ||
		err.Error() != "keep is 1s, want 1m0s to 87600h0m0s" {
		t.Error(err)
	}
}

// Many transactions claim the same ids at once, some of them roll back, and the ring rotates three times.
func TestConcurrentDuplicatesAreTakenOnceWhileTheRingTurns(t *testing.T) {
	const rounds, workers, ids, most = 12, 6, 240, 12
	b := openBorder(t)
	for round := range rounds {
		var (
			mu    sync.Mutex
			taken = map[saga.ID]int{}
			group sync.WaitGroup
		)
		for worker := range workers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
				order := random.Perm(ids)
				for len(order) > 0 {
					some := order[:min(len(order), 1+random.IntN(most))]
					fresh, err := b.takeSome(byte(round), some, random.IntN(4) == 0)
					if err != nil {
						t.Errorf("worker %d: %v", worker, err)
						return
					}
					if fresh == nil {
						continue // rolled back: repeat it
					}
					order = order[len(some):]
					mu.Lock()
					for _, id := range fresh {
						taken[id]++
					}
					mu.Unlock()
				}
			})
		}
		group.Go(func() {
			for range 3 {
				b.turnAtOnce()
			}
		})
		group.Wait()
		for id, n := range taken {
			if n != 1 {
				t.Fatalf("round %d: id %s was taken %d times", round, id, n)
			}
		}
		if len(taken) != ids {
			t.Fatalf("round %d: %d ids were taken, want %d", round, len(taken), ids)
		}
	}
}

// takeSome runs one transaction. fresh is nil if it was rolled back.
func (b *border) takeSome(round byte, some []int, rollback bool) (fresh []saga.ID, err error) {
	given := make([]outbox.InboxEntry, len(some))
	for i, n := range some {
		given[i] = outbox.InboxEntry{ID: saga.ID{round + 1, byte(n >> 8), byte(n)}, Sum: 1}
	}
	errAgain := errors.New("again")
	err = pgx.BeginTxFunc(b.Context(), b.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		outcomes, err := b.receive(b.Context(), tx, "a", given...)
		if err != nil {
			return err
		}
		fresh = []saga.ID{}
		for n, o := range outcomes {
			if o == dedup.Fresh {
				fresh = append(fresh, given[n].ID)
			}
		}
		if _, err := tx.Exec(b.Context(), "SELECT pg_sleep(0.001)"); err != nil { // the effects take time
			return err
		}
		if rollback {
			return errAgain
		}
		return nil
	})
	if errors.Is(err, errAgain) {
		return nil, nil
	}
	return fresh, err
}

// turnAtOnce repeats the rotation until it succeeds, while claims come and go.
func (b *border) turnAtOnce() {
	if _, err := pg.Committed(b.pool).Exec(b.Context(),
		b.schema.Render(`UPDATE :schema.ring SET since = now() - interval '1 year' WHERE name = 'inbox'`)); err != nil {
		b.Error(err)
		return
	}
	for turned := false; !turned; {
		var err error
		if turned, err = b.rings.Rotate(b.Context(), b.pool, ring.Inbox); err != nil &&
			!errors.Is(err, ring.ErrHeld) {
			b.Error(err)
			return
		}
	}
}

// A rotation waits for transactions with claimed ids, in short pieces, so that other claims continue.
func TestTurnWaitsAndLetsOthersGoOn(t *testing.T) {
	b := openBorder(t)
	tx := begin(t, b.pool)
	if _, err := b.receive(t.Context(), tx, "a", received(1, 1)); err != nil {
		t.Fatal(err)
	}
	turned := make(chan struct{})
	go func() { defer close(turned); b.turnAtOnce() }()
	slowest := time.Duration(0)
	for n := range 40 {
		begun := time.Now()
		b.wantReceived("a", []outbox.InboxEntry{received(byte(n+2), 1)}, dedup.Fresh)
		slowest = max(slowest, time.Since(begun))
	}
	select {
	case <-turned:
		t.Error("the ring turned under an open claim")
	default:
	}
	if slowest > 2*time.Second {
		t.Errorf("a claim took %v while a turn waited", slowest)
	}
	commit(t, tx)
	<-turned
	b.wantReceived("a", []outbox.InboxEntry{received(1, 1), received(2, 1)}, dedup.Duplicate, dedup.Duplicate)
}

// The first claimer decides: after its commit the second claim is a duplicate, after its rollback it is fresh.
func TestInboxWaitsForTheOther(t *testing.T) {
	for name, want := range map[string]dedup.Outcome{"commit": dedup.Duplicate, "rollback": dedup.Fresh} {
		t.Run(name, func(t *testing.T) {
			b := openBorder(t)
			first, second := begin(t, b.pool), begin(t, b.pool)
			if _, err := b.receive(t.Context(), first, "a", received(1, 1)); err != nil {
				t.Fatal(err)
			}
			got := make(chan string, 1)
			go func() {
				outcomes, err := b.receive(t.Context(), second, "a", received(1, 1))
				got <- fmt.Sprint(outcomes, err)
			}()
			pgtest.AwaitBlocked(t, b.pool, second.Conn())
			if name == "commit" {
				commit(t, first)
			} else if err := first.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g := <-got; g != fmt.Sprint([]dedup.Outcome{want}, nil) {
				t.Errorf("got %s, want %v", g, want)
			}
		})
	}
}

// The SQL function received and this package write the same ids.
func TestReceivedMeetsTheSQLFunction(t *testing.T) {
	b := openBorder(t)
	for n, id := range []string{"7", "Order 7 ä", "0198C0DE-0000-7000-8000-000000000001",
		"0198c0de-0000-7000-8000-000000000001", "00000000-0000-0000-0000-000000000000"} {
		tx := begin(t, b.pool)
		for round, want := range []bool{true, false} {
			if fresh, err := b.store.InboxTx(t.Context(), tx, "a", id); err != nil || fresh != want {
				t.Errorf("%s, round %d: %v, %v", id, round, fresh, err)
			}
		}
		commit(t, tx)
		// its digest was not recorded
		b.wantReceived("a", []outbox.InboxEntry{{ID: outbox.InboxID("a", id), Sum: int64(n)}}, dedup.Duplicate)
		other := begin(t, b.pool)
		b.wantReceived("b", []outbox.InboxEntry{{ID: outbox.InboxID("b", id), Sum: 1}}, dedup.Fresh)
		if fresh, err := b.store.InboxTx(t.Context(), other, "b", id); err != nil || fresh {
			t.Errorf("%s from b: %v, %v", id, fresh, err)
		}
		commit(t, other)
	}
	b.turn(ring.Inbox)
	tx := begin(t, b.pool)
	if fresh, err := b.store.InboxTx(t.Context(), tx, "a", "7"); err != nil || fresh {
		t.Errorf("after a turn: %v, %v", fresh, err)
	}
	commit(t, tx)
}

// A transaction whose snapshot is older than a rotation would write into a slot that is no longer the current one.
func TestReceivedRefusesASnapshotOlderThanATurn(t *testing.T) {
	b := openBorder(t)
	tx, err := b.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM pg_class"); err != nil {
		t.Fatal(err)
	}
	b.turn(ring.Inbox)
	if _, err := b.store.InboxTx(t.Context(), tx, "a", "7"); pgerr.ClassOf(err) != pgerr.Race {
		t.Errorf("%v, want 40001", err)
	}
}

func TestReceivedRefusesWhatNamesNothing(t *testing.T) {
	b := openBorder(t)
	for _, c := range [][2]string{{"", "7"}, {"a\x00", "7"}, {"a\nb", "7"}, {"a", ""}} {
		tx := begin(t, b.pool)
		if _, err := b.store.InboxTx(t.Context(), tx, c[0], c[1]); err == nil {
			t.Errorf("%q was received", c)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c[0] == "a\x00" {
			continue // Postgres cannot store this text
		}
		if _, err := b.pool.Exec(t.Context(), b.schema.Render(`SELECT :schema.received($1, $2)`), c[0],
			c[1]); pgerr.Code(err) != "22023" {
			t.Errorf("the function takes %q: %v", c, err)
		}
	}
}

// A connection plans its statements on empty tables, and keeps the plans.
func TestInboxPlansMadeOnEmptyTablesServeFullOnes(t *testing.T) {
	b := openBorder(t)
	tx := begin(t, b.pool)
	for _, set := range []string{"SET LOCAL plan_cache_mode = force_generic_plan", "SET LOCAL enable_seqscan = off",
		"SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off", "SET LOCAL enable_bitmapscan = off"} {
		if _, err := tx.Exec(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	ids := "{00000000-0000-0000-0000-000000000007,00000000-0000-0000-0000-000000000008," +
		"f0000000-0000-0000-0000-000000000008}"
	explained := map[string][]string{
		"claim_received": {"a", ids, "{1,2,3}"}, "received_sums": {"a", ids},
		"list_kept":   {"a", "-infinity", "00000000-0000-0000-0000-000000000000", "infinity", "", "10", "1000000"},
		"show_kept":   {"00000000-0000-0000-0000-000000000007", "10"},
		"kept_bodies": {"a", "{2026-01-01 00:00:07+00}", "{00000000-0000-0000-0000-000000000007}"},
	}
	statements := map[string]string{}
	for name := range explained {
		statements[name] = b.store.SQL(name)
		if _, err := tx.Prepare(t.Context(), name, statements[name]); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"empty", "full"} {
		for name, args := range explained {
			inner, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, scan := range pgtest.Explain(t, inner, name, args...) {
				if state == "full" && scan.Table != "ring" && scan.Table != "" &&
					(scan.Node == "Seq Scan" || scan.Rows+scan.Removed > 10) {
					t.Errorf("%s: %v", name, scan)
				}
			}
			if err := inner.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if state == "full" {
			break
		}
		for _, fill := range []string{
			`INSERT INTO :schema.inbox (slot, source, id, sum) SELECT n % 4, 'a',
				('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, n FROM generate_series(1, 20000) n`,
			`INSERT INTO :schema.outbox (slot, endpoint, relayed, id, kind, header, body)
				SELECT n % 4, 'a', '2026-01-01 00:00:00+00'::timestamptz + n * interval '1 second',
				('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'k', '{}', '' FROM generate_series(1,
				20000) n`,
		} {
			if _, err := tx.Exec(t.Context(), b.schema.Render(fill)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// One transaction writes while the ring rotates, and a second one after the rotation. If the first had read the slot
// before the rotation and wrote into it afterwards, the second would not find its id: both would take the id for new.
func TestReceivedDuringATurnIsSeenByThoseAfterIt(t *testing.T) {
	b := openBorder(t)
	turning, first, second := begin(t, b.pool), begin(t, b.pool), begin(t, b.pool)
	b.exec(`UPDATE :schema.ring SET since = now() - interval '1 year'`)
	if _, err := turning.Exec(t.Context(), b.schema.Render(`SELECT :schema.rotate_ring('inbox')`)); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	ask := func(tx pgx.Tx) {
		fresh, err := b.store.InboxTx(t.Context(), tx, "a", "7")
		got <- fmt.Sprint(fresh, err)
	}
	go ask(first)
	pgtest.AwaitBlocked(t, b.pool, first.Conn())
	commit(t, turning)
	if g := <-got; g != "true <nil>" {
		t.Fatalf("the first: %s", g)
	}
	backend := pgtest.Backend(t, second)
	go ask(second)
	for blocked := false; !blocked; {
		select {
		case g := <-got:
			t.Fatalf("the second does not wait for the first, and is told %s", g)
		default:
		}
		if err := b.pool.QueryRow(t.Context(), "SELECT cardinality(pg_blocking_pids($1)) > 0",
			backend).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, first)
	if g := <-got; g != "false <nil>" {
		t.Errorf("the second: %s", g)
	}
	commit(t, second)
}
