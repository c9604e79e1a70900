package pg_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Forty loops that retry fifty times a second, on two pools and on connections of their own, connect twice a second at
// most while the database is away.
func TestLoopsShareTheAttemptsToConnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialled atomic.Int64
		config, err := pgxpool.ParseConfig("postgres://somebody@127.0.0.1:9/nowhere?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
			dialled.Add(1)
			return nil, errors.New("it is away")
		}
		var pools [2]*pg.Pool
		for n := range pools {
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			pools[n] = pg.Committed(pool)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		try := []func() error{
			func() error { _, err := pools[0].Exec(ctx, "SELECT 1"); return err },
			func() error { return pools[1].QueryRow(ctx, "SELECT 1").Scan(nil) },
			func() error { _, err := pools[1].Begin(ctx); return err },
			func() error { _, err := pg.Dial(ctx, config); return err },
		}
		var loops sync.WaitGroup
		for n := range 40 {
			loops.Go(func() {
				for ctx.Err() == nil {
					err := try[n%len(try)]()
					if failed := (*pgconn.ConnectError)(nil); ctx.Err() == nil && !errors.As(err, &failed) {
						t.Errorf("%v", err)
					}
					select {
					case <-time.After(20 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
		}
		loops.Wait()
		if n := dialled.Load(); n < 50 || n > 40+120 {
			t.Errorf("%d attempts to connect within a minute", n)
		}
		soon, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if _, err := pools[0].Exec(soon, "SELECT 1"); err == nil ||
			!strings.Contains(err.Error(), "the database is away since 2000-01-01T00:00:00Z: ") {
			t.Errorf("%v", err)
		}
	})
}

// Two passwords do not share their attempts, and an attempt that ends its goroutine keeps no others waiting.
func TestAttemptsThatAreNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := func(password string, hook func()) error {
			config, err := pgxpool.ParseConfig("postgres://somebody:" + password + "@127.0.0.1:9/apart?sslmode=disable")
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
				hook()
				return nil, errors.New("it is away")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = pg.Dial(ctx, config)
			return err
		}
		nothing := func() {}
		_ = dial("wrong", nothing)
		if err := dial("right", nothing); err == nil || strings.Contains(err.Error(), "is away since") {
			t.Errorf("the first attempt with a password of its own: %v", err)
		}
		var ends sync.WaitGroup
		ends.Go(func() { _ = dial("right", runtime.Goexit) })
		ends.Wait()
		if err := dial("right", nothing); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an attempt after one that ended its goroutine: %v", err)
		}
	})
}
