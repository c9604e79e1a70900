package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

var errAway = errors.New("the broker is away")

// The other side is away for far longer than any message is tried, and comes back during the first message: no message
// is given up, and all arrive in order.
func TestAwayBrokerKillsNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(40)
	calls := 0
	a := &abroad{refuse: func(d *saga.Delivery) error {
		if calls++; calls > 1000 && d.Info.ID == want[0] {
			return nil
		}
		return errAway
	}}
	o := soonRelayed()
	o.MaxRetryDelay, o.Stuck = 2*time.Millisecond, 3
	back := w.runRelay(w.relay(w.bus, o, func(ctx context.Context, m []*saga.Delivery) []error {
		errs := a.forward(ctx, m)
		if len(a.ids()) > 0 {
			a.set(nil)
		}
		return errs
	}))
	defer back()
	want = append(want, w.sendCrossed(10)...)
	w.untilEmpty("border")
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	if n := len(eventsOf[event.Retried](w)); n < 100 {
		t.Errorf("only %d failures were told of", n)
	}
}

// The other side refuses one message: its neighbours arrive, it becomes a dead letter with its bytes, and a retry puts
// it back.
func TestPoisonIsDeadLettered(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(20)
	refuse := func(d *saga.Delivery) error {
		if d.Info.ID == ids[7] {
			return errors.New("a field is missing")
		}
		return nil
	}
	a := &abroad{refuse: refuse}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	want := slices.Delete(slices.Clone(ids), 7, 8)
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE endpoint = 'border' AND message_id = $1 AND attempts = 13
		AND reason = 'stuck' AND error = 'a field is missing'
		AND first_failed IS NOT NULL AND convert_from(body, 'UTF8') = '{"Key":"","N":7}'`, ids[7])
	a.set(nil)
	number := int64(w.count(`SELECT id FROM edda.dead_letter`))
	if err := w.operator().DeadLetters().Retry(t.Context(), number); err != nil {
		t.Fatal(err)
	}
	w.until("it arrives", func() bool { return slices.Contains(a.ids(), ids[7]) })
	w.untilEmpty("border")
}

// The queue gets its next message when the last has gone: a refused message does not block it for long, and does not
// stay for ever.
func TestPoisonInASparseQueue(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	poison := w.send(crossed{Key: "poison"}).ID
	a := &abroad{refuse: func(d *saga.Delivery) error {
		if d.Info.ID == poison {
			return errors.New("not taken")
		}
		return nil
	}}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	for n := range 3 {
		w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		w.send(crossed{N: n})
		w.until("it arrives", func() bool { return len(a.ids()) == n+1 })
	}
	w.untilEmpty("border")
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'stuck'`)
}

// The number and the size of refused messages, one behind the other, do not matter: the messages behind them arrive,
// and the refused messages become dead letters.
func TestManyPoisonsInASparseQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ poisons, batchMax, batchBytes int }{
		"more than are tried behind one": {15, 12, 0},
		"each fills a turn":              {3, 0, 10},
		"two":                            {2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.installRelay()
			poison := map[saga.ID]bool{}
			for range c.poisons {
				poison[w.send(crossed{Key: "poison"}).ID] = true
			}
			var refused atomic.Int64
			a := &abroad{refuse: func(d *saga.Delivery) error {
				if poison[d.Info.ID] {
					refused.Add(1)
					return errors.New("not taken")
				}
				return nil
			}}
			o := soonRelayed()
			o.BatchMax, o.BatchBytes, o.Stuck, o.MaxRetryDelay = c.batchMax, c.batchBytes, 3, 2*time.Millisecond
			w.runRelay(w.relay(w.bus, o, a.forward))
			left := func() int { return w.count(`SELECT count(*) FROM ` + w.queue("border")) }
			within := pgdev.Deadline(t)
			for n := 1; left() > 0; n++ { // a message is given up while others are accepted
				if within.Err() != nil {
					t.Fatalf("%d messages are never given up", left())
				}
				w.send(crossed{N: n})
				w.until("it arrives", func() bool { return len(a.ids()) == n })
				before := refused.Load()
				w.until("they are tried alone", func() bool {
					return refused.Load() > before+int64(c.poisons) ||
						left() == 0
				})
			}
			w.want(c.poisons, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'stuck'`)
		})
	}
}

// The other side comes back for a moment again and again, and never for the first message: it has not refused that
// message.
func TestMomentsOfABrokerKillNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	first := w.send(crossed{}).ID
	want := append([]saga.ID{first}, w.sendCrossed(40)...)
	calls, moments := 0, 0
	a := &abroad{refuse: func(d *saga.Delivery) error {
		switch calls++; {
		case moments == 8:
			return nil
		case calls%50 == 0 && d.Info.ID != first:
			moments++
			return nil
		}
		return errAway
	}}
	o := soonRelayed()
	o.MaxRetryDelay, o.Stuck = 2*time.Millisecond, 3
	w.runRelay(w.relay(w.bus, o, oneByOne(a.forward)))
	w.untilEmpty("border")
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	if got := len(a.ids()); got != len(want) {
		t.Errorf("%d messages arrived, want %d", got, len(want))
	}
}

// While the broker was away, messages far behind the first were tried. When a later message is stuck, the tries begin
// again with the messages right behind it.
func TestProbesBeginBehindEachStuckMessage(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(60)
	calls, away := 0, true
	a := &abroad{refuse: func(d *saga.Delivery) error {
		if calls++; calls > 100 && d.Info.ID == ids[0] {
			away = false
		}
		if away || d.Info.ID == ids[1] {
			return errAway
		}
		return nil
	}}
	o := soonRelayed()
	o.MaxRetryDelay, o.Stuck = 2*time.Millisecond, 3
	w.runRelay(w.relay(w.bus, o, oneByOne(a.forward)))
	want := slices.Delete(slices.Clone(ids), 1, 2)
	w.until("all others are there", func() bool { return len(a.ids()) == len(want) })
	want = append(want, w.sendCrossed(5)...) // they never failed, so they are evidence against the message that fails
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND reason = 'stuck'`, ids[1])
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
}

// oneByOne is a Forward that passes only the first message of a call to the other side.
func oneByOne(forward outbox.Forward) outbox.Forward {
	return func(ctx context.Context, m []*saga.Delivery) []error {
		errs := slices.Repeat([]error{outbox.ErrBehind}, len(m))
		errs[0] = nil
		if first := forward(ctx, m[:1]); len(first) > 0 {
			errs[0] = first[0]
		}
		return errs
	}
}

// A message that can never succeed is given up at once, an unwanted one is discarded, and later messages arrive.
func TestRelayGivesUpAtOnce(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(6)
	large := errors.New("too large")
	a := &abroad{refuse: func(d *saga.Delivery) error {
		switch d.Info.ID {
		case ids[1]:
			return saga.Permanent(errors.New("no such topic"))
		case ids[2]:
			return large
		case ids[4]:
			return saga.Discard("nobody wants it")
		}
		return nil
	}}
	w.exec(`INSERT INTO `+w.queue("border")+` (due, id, kind, header, body) VALUES (now(), $1, 'border.crossed', `+
		`'no header', E'\\xff00')`, saga.ID{1: 7})
	o := soonRelayed()
	o.Permanent = func(err error) bool { return errors.Is(err, large) }
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.untilEmpty("border")
	if got, want := a.ids(), []saga.ID{ids[0], ids[3], ids[5]}; !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	w.want(3, `SELECT count(*) FROM edda.dead_letter WHERE endpoint = 'border' AND attempts = 1
		AND reason = 'permanent'`)
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE error LIKE 'header: %' AND body = E'\\xff00'
		AND header = 'no header'`)
	w.want(1, `SELECT count(*) FROM edda.discarded WHERE message_id = $1 AND reason = 'nobody wants it'`, ids[4])
}

// A Forward that panics, or returns an invalid result, has failed.
func TestForwardThatMisbehaves(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(3)
	a := &abroad{}
	var calls atomic.Int32
	w.runRelay(w.relay(w.bus, soonRelayed(), func(ctx context.Context, m []*saga.Delivery) []error {
		switch calls.Add(1) {
		case 1, 2: // of all three, and of the first of them
			panic("oh no")
		case 3:
			return make([]error, len(m)+1)
		}
		return a.forward(ctx, m)
	}))
	w.untilEmpty("border")
	if got := a.ids(); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	failed := eventsOf[event.Retried](w)
	if len(failed) != 2 || !strings.Contains(failed[0].Err.Error(), "panic: oh no") ||
		!strings.Contains(failed[1].Err.Error(), "2 errors for 1 messages") {
		t.Errorf("failures: %v", failed)
	}
}

func TestRelayPausesAndResumes(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.sendCrossed(1)
	w.untilEmpty("border")
	if err := w.operator().Endpoints().Pause(t.Context(), "border", "the broker moves"); err != nil {
		t.Fatal(err)
	}
	w.until("it is paused", func() bool { return len(eventsOf[event.Paused](w)) == 1 })
	w.sendCrossed(3)
	w.want(3, `SELECT count(*) FROM `+w.queue("border"))
	if err := w.operator().Endpoints().Resume(t.Context(), "border"); err != nil {
		t.Fatal(err)
	}
	w.untilEmpty("border")
	untilTold[event.Resumed](w, 1)
	if n, resumed := len(a.ids()), len(eventsOf[event.Resumed](w)); n != 4 || resumed != 1 {
		t.Errorf("%d arrived and %d times it was resumed, want 4 and once", n, resumed)
	}
}

// A shutdown lets forward finish the messages that it has, deletes them, and releases the lease. A forward that does
// not end in time is cancelled.
func TestRelayDrains(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	for _, patient := range []bool{true, false} {
		a, stand := &abroad{}, newGate(t)
		o := soonRelayed()
		if !patient {
			o.Drain = time.Millisecond
		}
		r := w.relay(w.bus, o, func(ctx context.Context, m []*saga.Delivery) []error {
			stand.pass()
			if !patient {
				<-ctx.Done()
				return slices.Repeat([]error{context.Cause(ctx)}, len(m))
			}
			return a.forward(ctx, m)
		})
		w.sendCrossed(4)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		await(w, "forward runs", stand.came)
		cancel()
		stand.open()
		err := <-ended
		if patient != (err == nil) || !patient && !errors.Is(err, bus.ErrDrain) {
			t.Errorf("Run returned %v", err)
		}
		w.want(1, `SELECT count(*) FROM edda.lease WHERE name = 'relay/border' AND holder IS NULL`)
		left := 4
		if patient {
			left = 0
		}
		w.want(left, `SELECT count(*) FROM `+w.queue("border"))
	}
}

// A lost lease ends forward long before Drain: at once, or, while a shutdown waits for forward, when the lease is no
// longer trusted. A different process may be relaying.
func TestRelayThatIsLostCancelsForward(t *testing.T) {
	for name, c := range map[string]struct {
		lease    time.Duration
		shutdown bool
	}{"at work": {time.Hour, false}, "in its drain": {2 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.installRelay()
			stand, cause := newGate(t), make(chan error, 1)
			o := soonRelayed()
			o.Lease, o.Drain = c.lease, time.Hour
			r := w.relay(w.bus, o, func(ctx context.Context, m []*saga.Delivery) []error {
				stand.pass()
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return slices.Repeat([]error{context.Cause(ctx)}, len(m))
			})
			w.sendCrossed(2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			await(w, "forward runs", stand.came)
			if c.shutdown {
				cancel()
			}
			stand.open()
			w.exec(`UPDATE edda.lease SET epoch = epoch + 1, holder = 'another',
				expires = clock_timestamp() + interval '1 h' WHERE name = 'relay/border'`)
			if err := await(w, "forward is cancelled", cause); !errors.Is(err, lease.ErrLost) {
				t.Errorf("the cause is %v, want %v", err, lease.ErrLost)
			}
			cancel()
			if err := await(w, "Run returns", ended); err != nil {
				t.Errorf("Run returned %v", err)
			}
			w.want(2, `SELECT count(*) FROM `+w.queue("border"))
		})
	}
}

// The message of a manifest's run ends the run when it is relayed, and a run that is over is not relayed.
func TestRelayEndsRuns(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	a := &abroad{}
	var runs []saga.Firing
	for range 3 {
		runs = append(runs, w.fire(crossed{}))
	}
	w.cancelRunInSQL(runs[1])
	a.set(func(d *saga.Delivery) error {
		if d.Info.Firing.Run == runs[2].Run {
			return saga.Permanent(errors.New("not taken"))
		}
		return nil
	})
	w.runRelay(w.relay(w.bus, soonRelayed(), a.forward))
	w.untilEmpty("border")
	if n := len(a.ids()); n != 1 {
		t.Errorf("%d messages arrived, want 1", n)
	}
	w.want(1, `SELECT count(*) FROM edda.discarded WHERE reason = 'its run is over'`)
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	for n, want := range []string{"succeeded/succeeded", "cancelled/open", "dead/failed"} {
		w.wantRun(runs[n], want)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range outbox.Envelope(&a.infos[0]) {
		if strings.HasPrefix(name, "edda-run") || strings.HasPrefix(name, "edda-fire") || name == "edda-manifest" {
			t.Errorf("the header %s crossed the border", name)
		}
	}
}

// The outbox has copies of the relayed messages, and of no others.
func TestRelayKeepsCopies(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(4)
	a := &abroad{refuse: func(d *saga.Delivery) error {
		if d.Info.ID == ids[2] {
			return saga.Permanent(errors.New("not taken"))
		}
		return nil
	}}
	o := soonRelayed()
	o.Keep = 1000 * time.Hour
	w.runRelay(w.relay(w.bus, o, a.forward))
	w.untilEmpty("border")
	w.want(3, `SELECT count(*) FROM edda.outbox WHERE endpoint = 'border' AND kind = 'border.crossed'
		AND convert_from(body, 'UTF8') LIKE '{"Key":"","N":_}'`)
	w.want(0, `SELECT count(*) FROM edda.outbox WHERE id = $1`, ids[2])
}
