package bus_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// age makes all messages of a queue, and all dead letters, two hours old.
func (w *world) age(endpoint string) {
	w.t.Helper()
	w.exec(`UPDATE ` + w.queue(endpoint) + ` SET sent = sent - interval '2 hours'`)
	w.exec(`UPDATE edda.dead_letter SET sent = sent - interval '2 hours'`)
}

func (w *world) wantExpired(n int) {
	w.t.Helper()
	w.want(n, `SELECT count(*) FROM edda.discarded WHERE reason = 'expired'`)
	w.want(0, `SELECT count(*) FROM edda.discarded WHERE reason <> 'expired'`)
}

// An expired message is discarded, for every kind of handler and every way to send it; messages without that time are
// handled.
func TestExpiredMessageIsNotHandled(t *testing.T) {
	t.Parallel()
	for name, handles := range map[string]func(*atomic.Int64) bus.Part{
		"in a batch": func(sum *atomic.Int64) bus.Part {
			return bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m call) error { sum.Add(int64(m.N)); return nil })
		},
		"leased": func(sum *atomic.Int64) bus.Part {
			return bus.Handle(func(_ *bus.Context, m call) error { sum.Add(int64(m.N)); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var handled atomic.Int64
			part := handles(&handled)
			w := newWorld(t, bus.Options{})
			w.install("calls", part)
			w.send(call{N: 1}, saga.Expire(time.Hour))
			w.send(call{N: 2}, saga.Expire(time.Hour), saga.At(time.Now().Add(-time.Hour)))
			raw := bus.RawMessage{Raw: saga.Raw{Name: "outside.call", Body: []byte(`{"N":4}`)}, Expire: time.Hour}
			if err := w.bus.SendRaw(t.Context(), "calls", raw); err != nil {
				t.Fatal(err)
			}
			w.raw("outside.call", `{"N":8}`, `{"edda-expire":"1h"}`, "calls")
			w.send(call{N: 16})
			w.send(call{N: 32}, saga.Expire(3*time.Hour))
			w.send(call{N: 64}, saga.Expire(time.Hour), saga.Delay(90*time.Minute))
			w.age("calls")
			w.exec(`UPDATE ` + w.queue("calls") + ` SET due = clock_timestamp()`)
			w.send(call{N: 128}, saga.Expire(time.Hour))
			w.start("calls", bus.EndpointOptions{}, part)
			w.untilEmpty("calls")
			if got := handled.Load(); got != 16+32+64+128 {
				t.Errorf("handled %b, want all but the first four", got)
			}
			w.wantExpired(4)
		})
	}
}

// The expiry is checked before each attempt, and a dead letter that is retried gets its time again.
func TestMessageExpiresWhileItIsRetried(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var calls atomic.Int64
	policy := func(recoverability.Failure) recoverability.Decision {
		if calls.Load() == 1 {
			return recoverability.RetryIn(time.Hour)
		}
		return recoverability.DeadLetter()
	}
	w.start("fails", bus.EndpointOptions{Policy: policy, Poll: 50 * time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, call) error {
			if calls.Add(1) > 2 {
				return nil
			}
			return errors.New("no")
		}))
	w.send(call{}, saga.Expire(time.Hour))
	w.until("it has failed", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("fails")+` WHERE attempt = 1`) == 1
	})
	w.age("fails")
	w.hurry("fails")
	w.untilEmpty("fails")
	w.wantExpired(1)

	w.send(call{}, saga.Expire(time.Hour))
	w.untilEmpty("fails")
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
	w.age("fails")
	err := w.operator().DeadLetters().Retry(t.Context(), int64(w.count(`SELECT id FROM edda.dead_letter`)))
	if err != nil {
		t.Fatal(err)
	}
	w.untilEmpty("fails")
	w.wantExpired(1)
	if calls.Load() != 3 {
		t.Errorf("%d calls, want the first, one of the second message, and one after it was taken back", calls.Load())
	}
}

// A relay publishes no expired message, and the messages that it publishes keep their expiry.
func TestRelayLeavesOutWhatHasExpired(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.send(crossed{Key: "a"}, saga.Expire(time.Hour))
	w.age("border")
	want := []saga.ID{w.send(crossed{Key: "a"}, saga.Expire(time.Hour)).ID, w.send(crossed{Key: "a"}).ID}
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("relayed %v, want %v", got, want)
	}
	w.wantExpired(1)
}
