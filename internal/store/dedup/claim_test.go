package dedup_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type ctx = context.Context

func want(t *testing.T, story string, got []dedup.Outcome, expected ...dedup.Outcome) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Errorf("%s: got %v, want %v", story, got, expected)
	}
}

// SendTx runs on a connection of the user, in whichever mode the user chose.
func TestClaimInEachModeOfPgx(t *testing.T) {
	t.Parallel()
	_, store := open(t)
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for n, mode := range modes {
		for _, arrays := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s arrays=%t", mode, arrays), func(t *testing.T) {
				conn := connect(t, mode, arrays)
				a, b := given(byte(2*n+1), "a"), given(byte(2*n+2), "b")
				other := a
				other.Sum = b.Sum
				tx := begin(t, conn)
				want(t, "first", claim(t, store, tx, b, a, a, other), dedup.Fresh, dedup.Fresh, dedup.Duplicate,
					dedup.Conflict)
				commit(t, tx)
				tx = begin(t, conn)
				want(t, "again", claim(t, store, tx, a, other, b), dedup.Duplicate, dedup.Conflict, dedup.Duplicate)
				batch := &pgx.Batch{}
				store.QueueForget(batch, []saga.ID{a.ID, b.ID})
				if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
					t.Fatal(err)
				}
				want(t, "after forgetting", claim(t, store, tx, a, b), dedup.Fresh, dedup.Fresh)
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n, err := store.Prune(t.Context(), conn, 0, 2); err != nil || n != 2 {
					t.Errorf("prune: %d rows, %v; want 2", n, err)
				}
			})
		}
	}
}

func connect(t *testing.T, mode pgx.QueryExecMode, arrays bool) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = mode
	config.RuntimeParams["standard_conforming_strings"] = "on" // pgx refuses the simple protocol without
	config.RuntimeParams["bytea_output"] = "escape"            // the role may have this setting
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if arrays {
		pg.RegisterArrays(conn.TypeMap())
	}
	return conn
}

func TestClaimOfNothingQueuesNothing(t *testing.T) {
	t.Parallel()
	_, store := open(t)
	b := &pgx.Batch{}
	store.NewClaim(nil).Queue(b)
	store.QueueForget(b, nil)
	if b.Len() != 0 {
		t.Errorf("%d statements were queued for no ids", b.Len())
	}
}

func TestRolledBackClaimLeavesTheIdFresh(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	tx := begin(t, pool)
	want(t, "first", claim(t, store, tx, given(1, "a")), dedup.Fresh)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx = begin(t, pool)
	want(t, "after the rollback", claim(t, store, tx, given(1, "other")), dedup.Fresh)
	commit(t, tx)
}

// The second claim waits for the first, and must then read the row that the first wrote, although its own insert
// could not.
func TestClaimSeesTheOneItWaitedFor(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback", "forget"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			pool, store := open(t)
			first, second := begin(t, pool), begin(t, pool)
			want(t, "first", claim(t, store, first, given(1, "a"), given(2, "b")), dedup.Fresh, dedup.Fresh)
			result := make(chan []dedup.Outcome, 1)
			go func() {
				outcomes, err := tryClaim(t.Context(), store, second, given(2, "b"), given(1, "other"))
				if err != nil {
					t.Error(err)
				}
				result <- outcomes
			}()
			pgtest.AwaitBlocked(t, pool, second.Conn())
			expected := []dedup.Outcome{dedup.Fresh, dedup.Fresh}
			switch end {
			case "commit":
				expected = []dedup.Outcome{dedup.Duplicate, dedup.Conflict}
				commit(t, first)
			case "rollback":
				_ = first.Rollback(t.Context())
			case "forget":
				b := &pgx.Batch{}
				store.QueueForget(b, []saga.ID{{1}, {2}})
				if err := first.SendBatch(t.Context(), b).Close(); err != nil {
					t.Fatal(err)
				}
				commit(t, first)
			}
			want(t, "second", <-result, expected...)
			commit(t, second)
		})
	}
}

func TestIdSentAfterTheSnapshotIsARace(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "unrelated", claim(t, store, old, given(9, "z")), dedup.Fresh)
	tx := begin(t, pool)
	want(t, "first", claim(t, store, tx, given(1, "a")), dedup.Fresh)
	commit(t, tx)
	if _, err := tryClaim(t.Context(), store, old, given(1, "a")); pgerr.ClassOf(err) != pgerr.Race {
		t.Errorf("claim below an old snapshot: %v, want a 40001", err)
	}
	_ = old.Rollback(t.Context())
}

// Ids that overlap, in every order of the callers: if claims did not sort the ids, these would deadlock.
func TestOverlappingClaimsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	pool, store := open(t)
	const workers, rounds, ids = 6, 30, 8
	fresh := make(chan int, workers)
	for w := range workers {
		go func() {
			won := 0
			for r := range rounds {
				n, err := claimRound(t, pool, store, w, r, ids)
				if err != nil {
					t.Errorf("worker %d, round %d: %v", w, r, err)
					break
				}
				won += n
			}
			fresh <- won
		}()
	}
	total := 0
	for range workers {
		total += <-fresh
	}
	if total != rounds*ids {
		t.Errorf("%d ids were fresh, want each of %d once", total, rounds*ids)
	}
}

// claimRound claims the ids of round r in an order that depends on worker w.
func claimRound(t *testing.T, pool interface {
	BeginTx(ctx, pgx.TxOptions) (pgx.Tx, error)
}, store *dedup.Store, w, r, ids int) (fresh int, err error) {
	tx, err := pool.BeginTx(t.Context(), pg.ReadCommitted)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var given []dedup.Given
	for i := range ids {
		given = append(given, dedup.Given{ID: saga.ID{byte(r), byte((i*(w*2+1) + w) % ids)}, Sum: []byte("same")})
	}
	outcomes, err := tryClaim(t.Context(), store, tx, given...)
	if err != nil {
		return 0, err
	}
	for _, o := range outcomes {
		if o == dedup.Fresh {
			fresh++
		}
	}
	return fresh, tx.Commit(t.Context())
}
