package eddadev_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddadev"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
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

// Run sets up an empty database, and ends when the first runner fails.
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

// A correct program causes no warning in the log of the server.
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

// records receives the texts of log records.
type records chan string

func (records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) WithAttrs([]slog.Attr) slog.Handler     { return r }
func (r records) WithGroup(string) slog.Handler          { return r }

func (r records) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	r <- text
	return nil
}

// The private Postgres outlives the program that had started it, if a second program uses it, and that program logs
// which messages wait for an endpoint that no process runs.
func TestAProgramThatJoined(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	t.Setenv(eddadev.PagesVariable, "off")
	name := "test-" + strings.ToLower(rand.Text()[:8])
	first, err := pgdev.Keep(t.Context(), name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Stop() })
	pool, err := eddadev.Connect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	logged, before := make(records, 10_000), slog.Default()
	slog.SetDefault(slog.New(logged))
	defer slog.SetDefault(before)
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := edda.RunnerFunc(func(ctx context.Context) error {
		if err := errors.Join(b.InstallQueue(ctx, "doors"), first.Stop()); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, pgdev.Patience(30*time.Second))
		defer cancel()
		for sent := false; ; {
			select {
			case said := <-logged:
				if strings.HasPrefix(said, "edda: messages wait for an endpoint that no process runs endpoint=doors "+
					"messages=1 ") {
					return errClosed
				}
			case <-time.After(100 * time.Millisecond):
				if !sent {
					_, err := b.Send(ctx, knock{}, saga.To("doors"))
					sent = err == nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	if err := eddadev.Run(t.Context(), b, late); !errors.Is(err, errClosed) {
		t.Errorf("%v, want the end after the warning", err)
	}
	left, _ := filepath.Glob("/var/tmp/edda-pg-*-" + name)
	cache, _ := os.UserCacheDir()
	more, _ := filepath.Glob(filepath.Join(cache, "edda-pg-*-"+name))
	for _, dir := range append(left, more...) {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
}

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
