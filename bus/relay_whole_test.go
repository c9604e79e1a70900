package bus_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
)

// brittle is an other side whose Forward fails as a whole: it accepts messages one after another, and fails at some of
// them.
type brittle struct {
	abroad
	harm  func() []error // the result of Forward in place of one error for each message, if it returns at all
	bad   func(d *saga.Delivery) bool
	sizes []int // of the calls; guarded by mu
}

func (b *brittle) forward(_ context.Context, messages []*saga.Delivery) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = append(b.sizes, len(messages))
	for _, d := range messages {
		if b.bad(d) {
			return b.harm()
		}
		b.got = append(b.got, d.Info.ID)
	}
	return nil
}

func (b *brittle) calls() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sizes)
}

// repeats returns how often the most frequent message was forwarded.
func (b *brittle) repeats() (most int) {
	given := map[saga.ID]int{}
	for _, id := range b.ids() {
		given[id]++
		most = max(most, given[id])
	}
	return most
}

// If a Forward has failed as a whole, the message at fault is unknown. The relay searches for it: each such message
// becomes a dead letter, the other messages arrive in their order, and few of them are forwarded again.
func TestRelayFindsTheMessageAtWhichForwardFails(t *testing.T) {
	t.Parallel()
	harms := map[string]struct {
		do   func() []error
		says string
	}{
		"a panic": {func() []error { panic("oh no") }, "panic: oh no%"},
		"an answer that is malformed": {func() []error { return make([]error, 777) },
			"forward returned 777 errors for 1 messages%"},
		"the end of the goroutine": {func() []error { runtime.Goexit(); return nil },
			"forward ended its goroutine%"},
	}
	for name, harm := range harms {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.installRelay()
			const all = 300
			ids := w.sendCrossed(all)
			places := []int{0, 41, 42, 200}
			bad := map[saga.ID]bool{}
			for _, n := range places {
				bad[ids[n]] = true
			}
			b := &brittle{harm: harm.do, bad: func(d *saga.Delivery) bool { return bad[d.Info.ID] }}
			w.runRelay(w.relay(w.bus, soonRelayed(), b.forward))
			w.untilEmpty("border")
			want := slices.DeleteFunc(ids, func(id saga.ID) bool { return bad[id] })
			if got := b.firsts(); !slices.Equal(got, want) {
				t.Errorf("arrived\n%v, want\n%v", got, want)
			}
			w.want(len(places), `SELECT count(*) FROM edda.dead_letter WHERE reason = 'stuck' AND attempts BETWEEN 12
				AND 20 AND error LIKE $1`, harm.says)
			w.want(len(places), `SELECT count(*) FROM edda.dead_letter`)
			if n := b.repeats(); n > 10*len(places) { // a binary search of 300 for each
				t.Errorf("a message that does no harm was given %d times", n)
			}
			for _, e := range eventsOf[event.Retried](w) {
				if !bad[e.Info.ID] {
					t.Fatalf("message %s was blamed: %v", e.Info.ID, e.Err)
				}
			}
		})
	}
}

// If a Forward fails at every message, for instance with a nil client, no message is to blame. The relay tries one
// message at a time, and less and less often; when the program works again all messages arrive.
func TestForwardThatAlwaysFailsKillsNothing(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(100)
	var well atomic.Bool
	b := &brittle{harm: func() []error { panic("no client") }, bad: func(*saga.Delivery) bool { return !well.Load() }}
	log, o := &kept{}, soonRelayed()
	o.Stuck, o.Logger = 3, log.logger()
	w.runRelay(w.relay(w.bus, o, b.forward))
	w.until("it was tried often", func() bool { return len(eventsOf[event.Retried](w)) > 50 })
	calls := b.calls()
	if whole := slices.DeleteFunc(slices.Clone(calls), func(n int) bool { return n == 1 }); len(whole) > 7 {
		t.Errorf("forward was given %v messages: only the first calls may be of many", calls)
	}
	if text := log.String(); strings.Count(text, "a relay's forward failed, and gets fewer") != 1 ||
		!strings.Contains(text, "panic: no client") {
		t.Errorf("the log says\n%s", text)
	}
	well.Store(true)
	w.untilEmpty("border")
	if got := b.ids(); !slices.Equal(got, want) {
		t.Errorf("arrived\n%v, want\n%v", got, want)
	}
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
}

// If a Forward fails when it gets too many messages at a time, no message is at fault: it gets fewer, and more again
// after a while.
func TestForwardIsGivenLessWhileItFailsAtMany(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	want := w.sendCrossed(400)
	var most atomic.Int64
	most.Store(30)
	a, largest, panics := &abroad{}, 0, 0
	w.runRelay(w.relay(w.bus, soonRelayed(), func(ctx context.Context, m []*saga.Delivery) []error {
		if len(m) > int(most.Load()) {
			panics++
			panic(fmt.Sprint(len(m), " are too many"))
		}
		largest = max(largest, len(m))
		return a.forward(ctx, m)
	}))
	w.untilEmpty("border")
	if panics > 15 { // 400, 200, 100 and 50 at a time, and then when the calls have grown too large again
		t.Errorf("forward failed %d times at too many messages", panics)
	}
	most.Store(1000)
	w.exec(`INSERT INTO ` + w.queue("border") + ` (due, id, kind, header, body)
		SELECT clock_timestamp(), gen_random_uuid(), 'border.crossed', '{}', '{}' FROM generate_series(1, 1500) n`)
	w.untilEmpty("border")
	if got := a.ids(); len(got) != 1900 || !slices.Equal(got[:400], want) {
		t.Errorf("%d messages arrived, want 1900, and the first of them\n%v, want\n%v", len(got),
			got[:min(400, len(got))], want)
	}
	if largest < 60 {
		t.Errorf("at most %d messages were given at a time when more were welcome again", largest)
	}
	w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	if failed := eventsOf[event.Retried](w); len(failed) > 0 {
		t.Errorf("message %s was blamed: %v", failed[0].Info.ID, failed[0].Err)
	}
}

// Permanent may judge a panic as it judges an error.
func TestPermanentJudgesPanicsOfForward(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	ids := w.sendCrossed(50)
	b := &brittle{harm: func() []error { panic("oh no") },
		bad: func(d *saga.Delivery) bool { return d.Info.ID == ids[30] }}
	o := soonRelayed()
	o.Permanent = func(err error) bool { return errors.As(err, new(*saga.PanicError)) }
	w.runRelay(w.relay(w.bus, o, b.forward))
	w.untilEmpty("border")
	if got := b.firsts(); !slices.Equal(got, slices.Delete(slices.Clone(ids), 30, 31)) {
		t.Errorf("arrived\n%v, want all of\n%v but the one at 30", got, ids)
	}
	w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE message_id = $1 AND attempts = 1 AND reason = 'permanent'`,
		ids[30])
	w.want(1, `SELECT count(*) FROM edda.dead_letter`)
}

// A shutdown does not wait for the end of a turn of several calls.
func TestRelayDrainsBetweenTwoCalls(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.sendCrossed(64)
	stand, calls := newGate(t), 0
	o := soonRelayed()
	o.Drain = time.Hour
	r := w.relay(w.bus, o, func(_ context.Context, m []*saga.Delivery) []error {
		if calls++; calls == 1 {
			panic("once")
		}
		stand.pass()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	await(w, "the second call", stand.came)
	cancel()
	stand.open()
	if err := await(w, "Run returns", ended); err != nil {
		t.Errorf("Run returned %v", err)
	}
	if calls != 2 {
		t.Errorf("forward was called %d times, want no more after the shutdown than the 2 that had begun", calls)
	}
	w.want(32, `SELECT count(*) FROM `+w.queue("border"))
}

// While the relay searches with slow calls, it deletes the accepted messages: a crash repeats only later ones.
func TestRelayDeletesBetweenSlowCalls(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.installRelay()
	w.sendCrossed(64)
	stand, calls := newGate(t), 0
	w.runRelay(w.relay(w.bus, soonRelayed(), func(context.Context, []*saga.Delivery) []error {
		switch calls++; calls {
		case 1:
			panic("once")
		case 2:
			<-time.After(time.Second + 10*time.Millisecond)
		default:
			stand.pass()
		}
		return nil
	}))
	await(w, "the third call", stand.came)
	w.want(32, `SELECT count(*) FROM `+w.queue("border"))
	stand.open()
	w.untilEmpty("border")
}
