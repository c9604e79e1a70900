package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Two programs at once: after two nights each settlement was entered once, and reported once and after it; the manifest
// whose handler fails for good has one run, which holds it.
func TestNights(t *testing.T) {
	dsn := eddatest.DSN(t)
	t.Setenv("DATABASE_URL", dsn)
	t.Setenv(eddadev.PagesVariable, "off")
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), tables); err != nil { // which two programs cannot make at one moment
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- run(ctx, 2*time.Second) }()
	}
	await(t, pool, `SELECT count(*) = 4 FROM (SELECT FROM effect WHERE manifest LIKE 'report/%'
		GROUP BY manifest HAVING count(*) > 1) reported`)
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var twice, early int
	err = pool.QueryRow(t.Context(), `SELECT
		(SELECT count(*) FROM (SELECT FROM effect GROUP BY manifest, due HAVING count(*) > 1) doubled),
		(SELECT count(*) FROM effect r WHERE manifest LIKE 'report/%' AND NOT EXISTS (SELECT FROM effect s
			WHERE s.manifest = replace(r.manifest, 'report', 'settle') AND s.due = r.due AND s.at <= r.at))`).
		Scan(&twice, &early)
	if err != nil || twice+early > 0 {
		t.Errorf("%d effects were doubled and %d reports came too early: %v", twice, early, err)
	}
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), scheduler.RunFilter{Manifest: "rates"})
	if err != nil || len(runs) != 1 || runs[0].State != scheduler.RunDead {
		t.Errorf("rates has the runs %+v, %v; want one that is dead", runs, err)
	}
	m, err := store.Manifest(t.Context(), "rates")
	if err != nil || m.State != scheduler.ManifestHeld {
		t.Errorf("rates is %v, %v; want it held", m.State, err)
	}
}

// await returns when a query answers true.
func await(t *testing.T, pool *pgxpool.Pool, query string) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-look.C {
		var yes bool
		if err := pool.QueryRow(t.Context(), query).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
	}
	t.Fatal("it did not happen within a minute")
}
