package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The shop opens twice: the second time it continues with the next order.
func TestShopOpensAgain(t *testing.T) {
	dsn := eddatest.DSN(t)
	t.Setenv("DATABASE_URL", dsn)
	t.Setenv(eddadev.PagesVariable, "off")
	for day := 1; day <= 2; day++ {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		awaitShipped(t, dsn, day)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// awaitShipped returns when n orders are shipped.
func awaitShipped(t *testing.T, dsn string, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	const query = `SELECT count(DISTINCT order_id) FROM outcome WHERE outcome = 'shipped'`
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-look.C {
		var shipped int
		if conn.QueryRow(t.Context(), query).Scan(&shipped) == nil && shipped >= n { // there may be no table yet
			return
		}
	}
	t.Fatalf("%d orders were not shipped within a minute", n)
}
