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

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
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

// Two passwords do not share their attempts, and an attempt that ends its goroutine does not make others wait.
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
		began := time.Now()
		if err := dial("right", nothing); err == nil || time.Since(began) >= time.Second {
			t.Errorf("an attempt after one that ended its goroutine took %v: %v", time.Since(began), err)
		}
	})
}

// An attempt that the server never answers delays the other callers for a moment, and the first of them that connects
// ends the outage.
func TestAnAttemptWithoutAnAnswerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)
	dial := func(ctx context.Context, by dialer) error {
		config, err := pgxpool.ParseConfig(pgdev.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.Password = "silent" // so that no other test shares the attempts
		config.ConnConfig.DialFunc = by
		conn, err := pg.Dial(ctx, config)
		if err == nil {
			pg.HangUp(ctx, conn)
		}
		return err
	}
	err := dial(t.Context(), func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") })
	if err == nil {
		t.Fatal("the first attempt has succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = dial(ctx, func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	}()
	<-begun
	open := (&net.Dialer{}).DialContext
	if err := dial(pgdev.Deadline(t), open); err != nil {
		t.Errorf("beside an attempt without an answer: %v", err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := dial(over, open); err == nil || strings.Contains(err.Error(), "is away since") {
		t.Errorf("after a caller has connected: %v", err)
	}
	cancel()
	<-ended
}
