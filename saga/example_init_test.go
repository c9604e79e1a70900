package saga_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
)

// The examples share a bus in memory; a call of Advance moves its clock. On Postgres the sagas behave the same.

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// inMemory runs a saga in one endpoint, and the parts in a second endpoint.
func inMemory(d *saga.Definition, parts ...bus.Part) (ctx context.Context, b *memory.Bus, end func()) {
	ctx = context.Background()
	b, err := memory.New(memory.Options{Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Logger: slog.New(slog.DiscardHandler)})
	check(err)
	_, err = memory.NewEndpoint(b, "desk", bus.EndpointOptions{}, bus.Saga(d))
	check(err)
	if len(parts) > 0 {
		_, err = memory.NewEndpoint(b, "others", bus.EndpointOptions{}, parts...)
		check(err)
	}
	stop, err := b.Start(ctx)
	check(err)
	return ctx, b, func() { check(stop()) }
}

// t stands for the *testing.T of a test, which an example does not have.
var t testingTB

type testingTB struct{ testing.TB }

func (testingTB) Helper()                   {}
func (testingTB) Context() context.Context  { return context.Background() }
func (testingTB) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (testingTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
