package bus_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// Two processes take from one queue. While a handler of one process runs the first message, the other process handles
// the next messages, and neither runs the first a second time.
func TestTwoWorkersRunOneMessageOnce(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(handle func(n int)) bus.Part{
		"a batch": func(handle func(n int)) bus.Part {
			return bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m call) error { handle(m.N); return nil })
		},
		"leased": func(handle func(n int)) bus.Part {
			return bus.Handle(func(_ *bus.Context, m call) error { handle(m.N); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			var (
				mu    sync.Mutex
				calls = map[int]int{}
				begun = make(chan struct{})
				end   = make(chan struct{})
			)
			finish := sync.OnceFunc(func() { close(end) })
			begin := sync.OnceFunc(func() { close(begun) })
			handle := func(n int) {
				mu.Lock()
				calls[n]++
				mu.Unlock()
				if n == 0 {
					begin()
					<-end
				}
			}
			called := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return calls[n]
			}
			o := bus.EndpointOptions{Poll: 20 * time.Millisecond, Concurrency: 1}
			w.start("callers", o, part(handle))
			t.Cleanup(finish) // before the endpoints are waited for
			w.send(call{N: 0})
			<-begun
			other := w.newBus(bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
			e, err := bus.NewEndpoint(other, "callers", o, part(handle))
			if err != nil {
				t.Fatal(err)
			}
			stop := w.run(e)
			t.Cleanup(finish)
			for n := 1; n <= 3; n++ {
				w.send(call{N: n})
				w.until("the other process handles what follows, or the first message again",
					func() bool { return called(n) > 0 || called(0) > 1 })
			}
			finish()
			w.untilEmpty("callers")
			stop()
			for n := range 4 {
				if called(n) != 1 {
					t.Errorf("message %d was handled %d times", n, called(n))
				}
			}
		})
	}
}
