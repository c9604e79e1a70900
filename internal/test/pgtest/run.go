package pgtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Run runs do until the test or stop ends its context. stop waits until do has returned, and fails the test if do
// returns an error or does not return.
func Run(t testing.TB, what string, do func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(pgdev.Patience(15 * time.Second)):
			t.Errorf("%s does not end", what)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Close closes a pool, and fails the test if a connection of it stays in use.
func Close(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(pgdev.Patience(10 * time.Second)):
		t.Error("a connection of the test's pool is still in use")
	}
}
