package eddadev_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/internal/pgdev"
	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

type knock struct{}

func (knock) Kind() string { return "knock" }

// failing is a runner that sends a message and then ends with an error.
type failing struct {
	b    *bus.Bus
	seen chan struct{}
}

var errClosed = errors.New("the shop is closed")

func (f failing) Run(ctx context.Context) error {
	if _, err := f.b.Send(ctx, knock{}); err != nil {
		return err
	}
	<-f.seen
	return errClosed
}

// Run sets up an empty database, and ends with the first runner that fails.
func TestRunSetsUpAndEnds(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	for _, pages := range []string{"127.0.0.1:0", "off"} {
		t.Setenv(eddadev.PagesVariable, pages)
		pool, err := eddadev.Connect(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		b, err := bus.New(pool, bus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan struct{}, 1)
		doors, err := bus.NewEndpoint(b, "doors", bus.EndpointOptions{},
			bus.HandleTx(func(*bus.Context, pgx.Tx, knock) error {
				seen <- struct{}{}
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		if err := eddadev.Run(t.Context(), b, doors, failing{b, seen}); !errors.Is(err, errClosed) {
			t.Errorf("pages %s: %v, want the error of the runner", pages, err)
		}
		pool.Close()
	}
}

// The log of the server has no warning of a program that does nothing wrong.
func TestServerHasNothingToWarnOf(t *testing.T) {
	server, err := pgdev.Start(t.Context(), pgdev.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	t.Setenv("DATABASE_URL", server.DSN())
	t.Setenv(eddadev.PagesVariable, "127.0.0.1:0")
	pool, err := eddadev.Connect(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1)
	doors, err := bus.NewEndpoint(b, "doors", bus.EndpointOptions{}, bus.HandleTx(
		func(ctx *bus.Context, _ pgx.Tx, _ knock) error {
			ctx.Send(ring{})
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	bells, err := bus.NewEndpoint(b, "bells", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, ring) error {
		seen <- struct{}{}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := eddadev.Run(t.Context(), b, doors, bells, failing{b, seen}); !errors.Is(err, errClosed) {
		t.Fatal(err)
	}
	if n, err := server.CountInLog("WARNING"); err != nil || n != 0 {
		t.Errorf("%d warnings in the log, %v:\n%s", n, err, server.LogTail())
	}
}

type ring struct{}

func (ring) Kind() string { return "ring" }

func TestPagesOnTheNetAreRefused(t *testing.T) {
	t.Setenv("DATABASE_URL", eddatest.DSN(t))
	t.Setenv(eddadev.PagesVariable, "0.0.0.0:0")
	pool, err := eddadev.Connect(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := eddadev.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), eddadev.PagesVariable) {
		t.Errorf("%v, want an error that names %s", err, eddadev.PagesVariable)
	}
}
