package bus_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// A program that may insert into a queue chooses the times of a row, including Go's zero time, and infinite times. Such
// a message is handled, retried and recorded like any other, and its neighbours are handled.
func TestMessagesOfAnyTimeEnd(t *testing.T) {
	t.Parallel()
	times := []string{"0001-01-01 00:00:00+00", "0001-01-01 00:00:00.000001+00", "4713-01-01 00:00:00+00 BC",
		"-infinity", "infinity", "294276-12-31 00:00:00+00"}
	policy, err := recoverability.Retries{Immediate: 1, Delayed: 1, Step: time.Millisecond}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	insert := func(w *world, queue, kind string) (all int) {
		for n, at := range times {
			due := at
			if n >= 3 { // an infinite time is refused, and a time in the future is not due
				due = "now"
			}
			w.exec(`INSERT INTO `+w.queue(queue)+
				` (due, id, kind, header, body, sent, first_failed) VALUES ($1::timestamptz, $2, $3, '{}', '{}', `+
				`$4::timestamptz, $4::timestamptz)`,
				due, newID(t), kind, at)
		}
		return len(times)
	}
	parts := map[string]bus.Part{
		"a transaction": bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return errNo }),
		"a lease":       bus.Handle(func(*bus.Context, add) error { return errNo }),
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.queueOf("fails")
			all := insert(w, "fails", add{}.Kind())
			w.start("fails", bus.EndpointOptions{Policy: policy, Poll: 10 * time.Millisecond}, part)
			w.untilEmpty("fails")
			w.want(all, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 4 AND error = 'no'`)
		})
	}
	t.Run("a relay", func(t *testing.T) {
		w := newWorld(t, bus.Options{})
		w.installRelay()
		all := insert(w, "border", crossed{}.Kind())
		a := &abroad{}
		w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
		w.untilEmpty("border")
		if got := a.ids(); len(got) != all {
			t.Errorf("%d messages were given, want %d", len(got), all)
		}
	})
}

// If a sender sets the time of the first failure in the future, a message of an unknown kind does not wait until then.
func TestAFirstFailureYetToComeIsNow(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("orders")
	w.exec(`INSERT INTO `+w.queue("orders")+` (due, id, kind, header, body, first_failed) VALUES (now(), $1, `+
		`'nobody.knows', '{}', '{}', now() + interval '500 years')`, newID(t))
	w.start("orders", bus.EndpointOptions{UnknownKindTimeout: 10 * time.Millisecond, Poll: 10 * time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return nil }))
	w.untilEmpty("orders")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'unknown kind'`)
}
