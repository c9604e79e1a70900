package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Two backfills fire the manifest for the last nights: each night is settled once, with the payments of its day.
func TestEachNightIsSettledOnce(t *testing.T) {
	t.Parallel()
	pool := eddatest.Pool(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE payment (day date, currency text,
		cents bigint); CREATE TABLE payout (day date, cents bigint)`); err != nil {
		t.Fatal(err)
	}
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	past := scheduler.Period{From: time.Now().Add(-73 * time.Hour), Until: time.Now().Add(-time.Hour)}
	nights, err := scheduler.Occurrences(nightly, past.From, past.Until)
	if err != nil || len(nights) != 3 {
		t.Fatalf("in three days it is due at %v (%v), want three nights", nights, err)
	}
	for i, night := range nights {
		if _, err := pool.Exec(t.Context(), `INSERT INTO payment VALUES ($1, 'NOK', $2), ($1, 'NOK', 1), ($1, 'EUR',
			7)`, night.Format(time.DateOnly), 100*i); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, pool) }()
	if queued, err := backfill(ctx, store, past); err != nil || queued != len(nights) {
		t.Errorf("the backfill queued %d runs (%v), want %d", queued, err, len(nights))
	}
	if again, err := store.Backfill(ctx, nightly.Name, past); err != nil || again.Queued != 0 ||
		again.Present != len(nights) {
		t.Errorf("the second backfill did %+v (%v), want nothing", again, err)
	}
	if err := untilPaid(ctx, pool, len(nights)); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	rows, _ := pool.Query(t.Context(), `SELECT cents FROM payout ORDER BY day`)
	if paid, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil || !slices.Equal(paid, []int{1, 101, 201}) {
		t.Errorf("paid out were %v (%v), want 1, 101 and 201", paid, err)
	}
	runs, err := store.Runs(t.Context(), scheduler.RunFilter{Manifest: nightly.Name})
	for _, r := range runs {
		if r.State != scheduler.RunSucceeded {
			t.Errorf("the run of %s is %s: %s", r.Due, r.State, r.Error)
		}
	}
	if err != nil || len(runs) != len(nights) {
		t.Errorf("there are %d runs (%v), want %d", len(runs), err, len(nights))
	}
}

// backfill waits for the program to have declared its manifest.
func backfill(ctx context.Context, store *scheduler.Store, p scheduler.Period) (queued int, err error) {
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		done, err := store.Backfill(ctx, nightly.Name, p)
		if !errors.Is(err, scheduler.ErrNoManifest) {
			return done.Queued, err
		}
	}
}

// untilPaid waits for want payouts. Each follows from the end of a run.
func untilPaid(ctx context.Context, pool *pgxpool.Pool, want int) error {
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		paid := 0
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM payout`).Scan(&paid); err != nil || paid >= want {
			return err
		}
	}
}
