package leased

import (
	"log/slog"
	"testing"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/message"
)

// A process that stalled between a claim and its handler must not run it. It neither ran the message nor gave it up:
// the next extension found the row as it was, and kept the message as long as the process lived.
func TestClaimThatIsNotTrustedIsGivenUp(t *testing.T) {
	t.Parallel()
	var emitted []event.Event
	terms := &Terms{To: &message.Recipient{Name: "calls", Log: slog.New(slog.DiscardHandler)},
		Options: Options{Lease: time.Second}}
	c := &claims{terms: terms, held: map[*claimed]struct{}{}, room: make(chan struct{}, 1)}
	m := &claimed{renewed: time.Now().Add(-950 * time.Millisecond)}
	c.held[m] = struct{}{}
	(&runner{Terms: terms, claims: c}).handle(t.Context(), &run.Hand{}, m)
	(&Engine{Terms: terms, claims: c, emit: func(e ...event.Event) { emitted = append(emitted, e...) }}).logLost()
	if len(c.held) != 0 || len(emitted) != 1 {
		t.Errorf("%d claims are held, and %v was emitted", len(c.held), emitted)
	}
}

// A process that is not sure of a lane in time gives it up, and leaves it as it is: other processes are about to look
// for its messages there.
func TestNothingIsExtendedInALaneThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	terms := &Terms{Options: Options{Ordered: true, Strict: true, Lease: 10 * time.Second}}
	for still, want := range map[time.Duration]int{5 * time.Second: 2, 8 * time.Second: 2, 9 * time.Second: 0,
		time.Hour: 0} {
		now := time.Now()
		c := &claims{terms: terms, held: map[*claimed]struct{}{}}
		c.lanes = map[string]*lane{"k": {renewed: now.Add(-still)}}
		for range 2 {
			c.held[&claimed{key: "k", renewed: now.Add(-still)}] = struct{}{}
		}
		x := &extender{Terms: terms, claims: c}
		if got := len(x.toExtend(now, x.interval()/4)); got != want {
			t.Errorf("%v after the last extension %d of 2 claims are extended, want %d", still, got, want)
		}
	}
}

// A finish keeps extensions from its own rows only, and not from all others while it runs.
func TestFinishHoldsUpNoOtherExtension(t *testing.T) {
	t.Parallel()
	c := newClaims(&Terms{Options: Options{Lease: time.Minute}}, 1)
	defer c.keepStill(nil)()
	if !c.still.TryLock() {
		t.Fatal("no lease can be extended before the finish has ended")
	}
	c.still.Unlock()
}
