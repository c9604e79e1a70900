package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// The same order is booked on both.
func TestOrderIsBooked(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	t.Setenv(eddadev.PagesVariable, "off")
	l := &ledger{cents: map[string]int{}}
	for name, run := range map[string]func(context.Context) error{
		"memory":   func(ctx context.Context) error { return runInMemory(ctx, l) },
		"postgres": runOnPostgres,
	} {
		t.Run(name, func(t *testing.T) { runUntilBooked(t, run) })
	}
	if len(l.cents) != 1 {
		t.Errorf("the ledger has %v, want one order", l.cents)
	}
}

func runUntilBooked(t *testing.T, run func(context.Context) error) {
	t.Helper()
	printed, out := io.Pipe()
	log.SetOutput(out)
	defer log.SetOutput(io.Discard)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.Contains(lines.Text(), "1990 cents are booked") {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the program did not say that the order is booked: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
