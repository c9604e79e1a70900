package bus_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// suspectedTwice puts messages into the queue in the state after two crashes. The claim that follows counts the second.
func (w *world) suspectedTwice(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body, claim, deaths, owner)
		SELECT now() - interval '1 minute', ('aaaaaaaa-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, $2, '{}',
		'{}', 2, 1, $3::text::uuid
		FROM generate_series(1, $1) n`, n, innocent{}.Kind(), w.died("1 second"))
}

// isSuspect reports whether a message is from suspected or suspectedTwice. All other ids are random: the first four
// digits of one in 65,536 are aaaa.
func isSuspect(id saga.ID) bool { return strings.HasPrefix(id.String(), "aaaaaaaa-0000-0000-0000-") }

// A handler that runs for hours is in hand when a suspect appears, so the suspect can be alone only for seconds.
func TestLeasedSuspectsHoldUpAnEndpointForSeconds(t *testing.T) {
	w := poisoned(t)
	g := newGate(t)
	var handled, suspects atomic.Int64
	w.preload(1)
	w.exec(`UPDATE ` + w.queue("poisoned") + ` SET id = 'bbbbbbbb-0000-0000-0000-000000000000'`)
	w.start("poisoned", bus.EndpointOptions{Concurrency: 8, Poll: 20 * time.Millisecond, StepTimeout: time.Hour},
		bus.Handle(func(c *bus.Context, _ innocent) error {
			switch id := c.Info().ID; {
			case id.String() == "bbbbbbbb-0000-0000-0000-000000000000":
				g.pass()
			case isSuspect(id):
				suspects.Add(1)
			default:
				handled.Add(1)
			}
			return nil
		}))
	t.Cleanup(g.open) // before the endpoint is stopped
	await(w, "the handler of hours", g.came)
	w.suspectedTwice(5)
	w.preload(50)
	w.until("everything else is handled", func() bool { return handled.Load() == 50 && suspects.Load() == 5 })
	g.open()
	w.untilEmpty("poisoned")
}

// Messages that were claimed with a suspect begin after it: a handler of hours among them would delay the suspect.
func TestLeasedSuspectsRunBeforeWhatWasClaimedWithThem(t *testing.T) {
	w := poisoned(t)
	g := newGate(t)
	w.suspectedTwice(1)
	w.preload(1)
	beside := make(chan bool, 1)
	w.start("poisoned", bus.EndpointOptions{Concurrency: 8, Poll: 20 * time.Millisecond, StepTimeout: time.Hour},
		bus.Handle(func(c *bus.Context, _ innocent) error {
			if !isSuspect(c.Info().ID) {
				g.pass()
				return nil
			}
			select {
			case <-g.came:
				beside <- true
			default:
				beside <- false
			}
			return nil
		}))
	t.Cleanup(g.open) // before the endpoint is stopped
	if await(w, "the suspect", beside) {
		t.Error("the suspect ran beside what had been claimed with it")
	}
	await(w, "the other one", g.came)
	g.open()
	w.untilEmpty("poisoned")
}

// A suspect may itself run for hours.
func TestLeasedSuspectThatTakesLongGetsCompany(t *testing.T) {
	w := poisoned(t)
	g := newGate(t)
	var handled atomic.Int64
	w.suspectedTwice(1)
	w.preload(50)
	w.start("poisoned", bus.EndpointOptions{Concurrency: 8, Poll: 20 * time.Millisecond, StepTimeout: time.Hour},
		bus.Handle(func(c *bus.Context, _ innocent) error {
			if isSuspect(c.Info().ID) {
				g.pass()
			}
			handled.Add(1)
			return nil
		}))
	t.Cleanup(g.open) // before the endpoint is stopped
	await(w, "the suspect", g.came)
	marked := `SELECT count(*) FROM ` + w.queue("poisoned") + ` WHERE id::text LIKE 'aaaaaaaa-0000-%' AND alone`
	w.want(1, marked)
	w.until("the others are handled", func() bool { return handled.Load() == 50 })
	w.want(0, marked) // if its process dies now, that is one death in company
	g.open()
	w.untilEmpty("poisoned")
}

// An outage ends the claims of processes that live. That proves nothing about their messages.
func TestOnlyDeathsMakeLeasedSuspects(t *testing.T) {
	w := poisoned(t)
	gates := map[bool]*gate{true: newGate(t), false: newGate(t)}
	w.suspected(2)
	w.exec(`UPDATE `+w.queue("poisoned")+` SET claim = 5, owner = $1::text::uuid`, w.died("1 second"))
	w.exec(`UPDATE `+w.queue("poisoned")+` SET owner = $1::text::uuid WHERE id::text LIKE '%2'`,
		w.text(`INSERT INTO edda.session (id, host, pid, queues, expires, locked)
			VALUES (gen_random_uuid(), 'a host', 7, '{}', now() + interval '1 hour', false) RETURNING id::text`))
	w.start("poisoned", bus.EndpointOptions{Concurrency: 2, StepTimeout: time.Hour},
		bus.Handle(func(c *bus.Context, _ innocent) error {
			gates[strings.HasSuffix(c.Info().ID.String(), "1")].pass()
			return nil
		}))
	for _, g := range gates {
		t.Cleanup(g.open) // before the endpoint is stopped
	}
	await(w, "one handler", gates[true].came)
	await(w, "a handler beside it", gates[false].came)
	w.want(1, `SELECT count(*) FROM `+w.queue("poisoned")+` WHERE id::text LIKE '%1' AND claim = 6 AND deaths = 1`)
	w.want(1, `SELECT count(*) FROM `+w.queue("poisoned")+` WHERE id::text LIKE '%2' AND claim = 6 AND deaths IS NULL`)
	for _, g := range gates {
		g.open()
	}
	w.untilEmpty("poisoned")
}
