package lease_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/jackc/pgx/v5"
)

// A listener whose connection breaks again and again, and works in between, is back as soon as after the first time:
// its pauses add up to some 2 s, and to more than 30 s if they grew.
func TestInterruptedListenerIsBackSoon(t *testing.T) {
	w := open(t)
	heard := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	l := lease.Listener{
		Pool: w.pool.Pool, Channel: w.schema.Channel(), Logger: slog.New(slog.DiscardHandler),
		Heard: func(payload string) { heard <- payload },
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	late := time.After(20 * time.Second)
	for n := range 16 {
		select {
		case <-heard: // it listens
		case <-late:
			t.Fatalf("after %d interruptions in 20 s it does not listen, want 16", n)
		}
		if _, err := w.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1`,
			"listen "+pgx.Identifier{w.schema.Channel()}.Sanitize()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	go func() {
		for range heard { // one more, if it was back before it saw the end
		}
	}()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(heard)
}
