package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/wake"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/settings"
)

// relayTerm is one term of a relay in this process: a loop that reads the queue, forwards and finishes. Reader,
// carrier and finisher have separate states, which belong to the goroutine of the loop.
type relayTerm struct {
	relay    *Relay
	alarm    *wake.Alarm
	settings *settings.Follower
	size     passSize
	reader   *reader
	carrier  *carrier
	finisher *finisher
	log      *reporter
	database run.Pauses // after failures of this database
}

func newRelayTerm(r *Relay, t lease.Term, pool *pg.Pool) *relayTerm {
	log, failures := &reporter{relay: r}, failures{}
	finisher := &finisher{relay: r, term: t, pool: pool, log: log, decided: map[queue.Position]verdict{},
		page: r.border.History.NewPage(r.name, newID)}
	set := r.border.Settings(r.name, r.options.Poll)
	finisher.keeps = func() history.Options { return set.Now().History.Or(r.border.History.General) }
	reader := &reader{relay: r, pool: pool, log: log, failures: failures, finisher: finisher}
	return &relayTerm{
		relay: r, alarm: wake.NewAlarm(r.options.Poll), settings: set,
		size: newPassSize(r.options.BatchMax), reader: reader, carrier: newCarrier(r, reader, failures, log),
		finisher: finisher, log: log,
		database: run.Pauses{First: 20 * time.Millisecond, Most: 5 * time.Second},
	}
}

// run makes passes until life ends; a pass that has begun may continue until working ends.
func (t *relayTerm) run(life, working context.Context) error {
	for t.alarm.Await(life) {
		for life.Err() == nil && t.awaitResume(life) {
			after, err := t.around(life, working)
			pause := t.database.After(err)
			if working.Err() != nil {
				return nil // canceled by the drain or a lost lease, which are logged
			}
			if err != nil {
				if pgerr.Incurable(err) || errors.Is(err, lease.ErrFenced) {
					return err
				}
				t.relay.calm.Warn("edda: a relay's pass failed", "endpoint", t.relay.name, "error", err)
				after = rest{wait: pause}
			} else {
				t.relay.border.Outage.Over()
			}
			if after.idle {
				break
			}
			if after.wait > 0 {
				_ = run.Sleep(life, after.wait) // the loop checks life itself
			}
		}
	}
	return nil
}

// rest is the pause after a pass. The zero value is no pause.
type rest struct {
	idle bool          // nothing is due
	wait time.Duration // before the next pass
}

// around calls pass inside the user's hook.
func (t *relayTerm) around(life, working context.Context) (after rest, err error) {
	hook := t.relay.border.Hooks.Around
	if hook == nil {
		after, _, err = t.pass(life, working)
		return after, err
	}
	about := &event.Transaction{Endpoint: t.relay.name, Work: event.Relay}
	hook.Do(working, about, func(working context.Context) {
		var b *batch
		after, b, err = t.pass(life, working)
		if b != nil {
			about.Taken = len(b.messages)
		}
		about.Err = err
		about.Messages = func() []event.Settled { return settled(b, err) }
	})
	return after, err
}

// settled returns the fates of the messages of a pass; b is nil if there was no pass.
func settled(b *batch, err error) []event.Settled {
	if b == nil {
		return nil
	}
	all := make([]event.Settled, len(b.messages))
	for n, m := range b.messages {
		all[n].Info = wire.ShownInfo(m.delivery.Info)
		if err == nil {
			all[n].Fate, all[n].Err = m.settled(), m.err
		}
	}
	return all
}

// pass relays the head of the queue: it reads, forwards and finishes. It returns the messages that it had in hand.
// After life has ended it begins only necessary work.
func (t *relayTerm) pass(life, working context.Context) (rest, *batch, error) {
	batch, err := t.reader.look(working, t.size.next())
	if err != nil {
		t.size.shrink(0)
		return rest{}, nil, fmt.Errorf("look: %w", pgerr.Explain(err))
	}
	if len(batch.messages) == 0 {
		if in := t.reader.head.again(time.Now()); in > 0 {
			t.reader.head.fromFront()
			t.alarm.WakeAt(time.Now().Add(in))
			return rest{idle: true}, nil, nil
		}
		if wait, found := t.reader.untilNext(working, batch.now); found {
			t.alarm.WakeAt(time.Now().Add(wait))
		}
		return rest{idle: true}, nil, nil
	}
	if batch.unread > 0 && batch.unread == len(batch.messages) { // all messages wait for a newer program
		return rest{wait: min(newerWait, t.relay.options.UnknownKindTimeout)}, batch, nil
	}
	if err := t.reader.checkRuns(working, batch); err != nil {
		t.size.shrink(len(batch.messages))
		return rest{}, batch, err
	}
	t.finisher.recall(batch)
	t.carrier.carry(life, working, batch)
	ended, err := t.finisher.finish(working, batch)
	if err != nil {
		t.finisher.remember(batch, err)
		t.size.shrink(len(batch.messages))
		return rest{}, batch, err
	}
	t.carrier.forgetEnded(ended)
	t.log.pass(working, batch, ended)
	t.finisher.refused = 0
	t.size.grow()
	t.reader.head.finished(batch.gone(), batch.xmax, batch.clock())
	return rest{wait: batch.wait}, batch, nil
}

// awaitResume waits while the relay is paused. It reports whether to continue.
func (t *relayTerm) awaitResume(life context.Context) bool {
	for {
		changed := t.settings.Changed()
		now := t.settings.Now()
		if t.settings.Report(now); !now.Paused {
			return life.Err() == nil
		}
		select {
		case <-changed:
		case <-life.Done():
			return false
		}
	}
}

// followSettings wakes an idle loop when a setting has changed.
func (t *relayTerm) followSettings(life context.Context) error {
	for {
		select {
		case <-t.settings.Changed():
			t.alarm.Wake()
		case <-life.Done():
			return nil
		}
	}
}

// passSize is the number of messages that a pass takes. It is halved after each pass that fails, down to one message,
// and grows again after each that succeeds.
type passSize struct{ now, most float64 }

const (
	growOnGood  = 1.1
	shrinkOnBad = 0.5
)

func newPassSize(most int) passSize { return passSize{now: float64(most), most: float64(most)} }

func (s *passSize) next() int { return max(1, int(s.now)) }

func (s *passSize) grow() { s.now = min(s.now*growOnGood+0.1, s.most) }

// shrink is called after a pass of n messages has failed; 0 if it failed before it had read them.
func (s *passSize) shrink(messages int) {
	if messages == 0 {
		messages = s.next()
	}
	s.now = max(1, float64(min(messages, s.next()))*shrinkOnBad)
}
