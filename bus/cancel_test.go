package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// A cancel that commits while the end of its message waits for the row changes nothing about a success. A failure is
// discarded, like a failure that the handler returns after it was cancelled.
func TestCancelDoesNotUndoASuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order     bus.Ordering
		statement string
		outcome   error
		kept      int
	}{
		"success":           {bus.Unordered, "finish", nil, 1},
		"success in a lane": {bus.Strict, "finish", nil, 1},
		"dead letter":       {bus.Unordered, "finish", saga.Permanent(errNo), 0},
		"retry":             {bus.Unordered, "finish", errNo, 0},
		"retry in a lane":   {bus.Strict, "finish", errNo, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			keep(w)
			g := newGate(t)
			calls := 0
			var key []bus.HandleOption[job]
			if c.order != bus.Unordered {
				key = append(key, bus.KeyedBy(func(job) string { return "k" }))
			}
			w.start("workers", bus.EndpointOptions{Ordered: c.order, Lease: time.Minute, Concurrency: 1},
				bus.Handle(func(ctx *bus.Context, m job) error {
					calls++
					g.pass()
					ctx.Send(called{N: m.N})
					return c.outcome
				}, key...))
			sent := w.send(job{N: 7})
			<-g.came
			tx := w.begin()
			// as Operator.Cancel does
			w.execTx(tx, "UPDATE "+w.queue("workers")+" SET cancelled = 'late' WHERE id = $1", [16]byte(sent.ID))
			g.open()
			w.untilWaiting(c.statement)
			w.commit(tx)
			w.untilEmpty("workers")
			w.until("its effects are there", func() bool { return w.count("SELECT count(*) FROM edda.kept") == c.kept })
			w.want(1-c.kept, "SELECT count(*) FROM edda.discarded WHERE reason = 'cancelled: late'")
			w.want(0, "SELECT count(*) FROM edda.dead_letter")
			if lost := eventsOf[event.ClaimLost](w); len(lost) > 0 || calls != 1 {
				t.Errorf("%d claims were lost, and the handler was called %d times", len(lost), calls)
			}
		})
	}
}

// Cancel waits for the batch that has the message, and finds the message when the batch has put it back.
func TestCancelFindsWhatItsBatchPutsBack(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	retry := func(recoverability.Failure) recoverability.Decision { return recoverability.RetryIn(time.Hour) }
	w.start("workers", bus.EndpointOptions{Policy: retry, StepTimeout: time.Minute},
		bus.HandleTx(func(*bus.Context, pgx.Tx, job) error {
			g.pass()
			return errNo
		}))
	sent := w.send(job{N: 1})
	<-g.came
	did := w.cancelBeside("workers", sent.ID)
	w.untilWaiting("cancel_waiting")
	g.open()
	if got := await(w, "the cancel", did); got != "1 <nil>" {
		t.Errorf("Cancel: %s, want CancelledWaiting", got)
	}
	w.want(0, "SELECT count(*) FROM "+w.queue("workers"))
	w.want(1, "SELECT count(*) FROM edda.discarded WHERE reason = 'cancelled: by a test'")
}

// cancelBeside calls Cancel in a goroutine, and returns a channel for its result.
func (w *world) cancelBeside(endpoint string, id saga.ID) <-chan string {
	did := make(chan string, 1)
	go func() {
		what, err := w.operator().Messages().Cancel(context.Background(), endpoint, id, "by a test")
		did <- fmt.Sprint(int(what), " ", err)
	}()
	return did
}

// A message of a partitioned endpoint is in the endpoint's own queue, or in a partition's.
func TestCancelInAPartition(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for _, name := range []string{"parts", "parts.p0", "parts.p1", "parts.px"} {
		w.queueOf(name)
	}
	w.exec(`INSERT INTO edda.settings (name, value) VALUES ('partitions/parts', '2')`)
	for _, queue := range []string{"parts", "parts.p0", "parts.p1"} {
		sent := w.send(job{N: 1}, saga.To(queue))
		if did, err := w.operator().Messages().Cancel(t.Context(), "parts", sent.ID, "by a test"); err != nil ||
			did != operate.CancelledWaiting {
			t.Errorf("in %s: %v, %v", queue, did, err)
		}
		w.want(1, "SELECT count(*) FROM edda.discarded WHERE message_id = $1 AND endpoint = $2", [16]byte(sent.ID),
			queue)
	}
	sent := w.send(job{N: 1}, saga.To("parts.px"))
	if _, err := w.operator().Messages().Cancel(t.Context(), "parts", sent.ID, "by a test"); !errors.Is(err,
		operate.ErrNotFound) {
		t.Errorf("a message of another endpoint: %v, want ErrNotFound", err)
	}
}
