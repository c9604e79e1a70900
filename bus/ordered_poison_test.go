package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/operate"
)

// preloadKeyed puts n innocents of a key into the queue, each due a millisecond after the last message.
func (w *world) preloadKeyed(key string, n int) {
	w.t.Helper()
	w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body)
		SELECT coalesce((SELECT max(due) FROM `+w.queue("poisoned")+
		`), now() - interval '1 minute') + n * interval '1 millisecond', gen_random_uuid(), $2, '{}', $3
		FROM generate_series(1, $1) n`, n, innocent{}.Kind(), fmt.Appendf(nil, `{"Key":%q}`, key))
}

// A message of an ordered endpoint whose handler kills its process was the first of its key again and again, and killed
// every process.
func TestOrderedPoisonIsDeadAfterFourProcesses(t *testing.T) {
	t.Parallel()
	for _, order := range []bus.Ordering{bus.Overtaking, bus.Strict} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := poisoned(t)
			for n := range 20 {
				w.preloadKeyed(fmt.Sprint("other-", n), 2)
			}
			w.preloadKeyed("k", 5)
			w.exec(`INSERT INTO `+w.queue("poisoned")+` (due, id, kind, header, body)
				SELECT max(due) + interval '1 millisecond', gen_random_uuid(), $1, '{}', '{"How":"exit","Key":"k"}'
				FROM `+w.queue("poisoned"), killer{}.Kind())
			w.preloadKeyed("k", 30)
			table := w.queue("poisoned")
			followers := w.text(`SELECT string_agg(f.id::text, ' ') FROM ` + table + ` f JOIN ` + table +
				` k ON f.due > k.due
				WHERE k.kind = 'poison.killer'`)
			s := w.supervise(1, workerSpec{Leased: true, Ordered: order, Concurrency: 8})
			everything := `SELECT (SELECT count(*) FROM ` + w.queue("poisoned") +
				`) + (SELECT count(*) FROM edda.parked)`
			w.untilWithin(pgdev.Patience(time.Minute), "all messages met their fate",
				func() bool { return w.count(everything) == 0 })
			s.stop()
			if n := s.died(); n < 3 || n > 4 {
				t.Errorf("%d processes died, want 4 at most", n)
			}
			w.want(1, `SELECT count(*) FROM edda.dead_letter`)
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE reason = 'process died' AND kind = 'poison.killer'`)
			w.want(75, `SELECT count(DISTINCT id) FROM edda.effect`)
			w.want(0, `SELECT count(*) FROM edda.effect e, edda.dead_letter d
				WHERE e.at < d.died AND e.id::text = ANY (string_to_array($1, ' '))`, followers)
		})
	}
}

// company records which messages were in hand beside suspects.
type company struct {
	mu       sync.Mutex
	now      int
	lonely   bool // a suspect is in hand
	suspects int
	beside   int
	begun    []string
}

func (c *company) handle(ctx *bus.Context, m turn) error {
	suspect := m.N == 7
	c.mu.Lock()
	if c.now++; c.lonely || suspect && c.now > 1 {
		c.beside++
	}
	if suspect {
		c.suspects, c.lonely = c.suspects+1, true
	}
	c.begun = append(c.begun, fmt.Sprint(m.Key, " ", m.N))
	c.mu.Unlock()
	_ = run.Sleep(ctx, 3*time.Millisecond) // long enough for others to begin beside it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
	if suspect {
		c.lonely = false
	}
	return nil
}

// A suspect, a message that two processes died with, runs with no other handler of its endpoint at the same time, even
// if it is far back in its lane: claimed by the process that owns the lane, or parked.
func TestOrderedSuspectsAreAloneInTheirEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	c := &company{}
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Concurrency: 8, Poll: 20 * time.Millisecond},
		bus.Handle(c.handle, bus.KeyedBy(func(m turn) string { return m.Key })))
	w.makeQueue("turns")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sendTurns(10, 20, nil)
	w.exec(`UPDATE `+w.queue("turns")+` SET deaths = 2, claim = 2 WHERE body::text LIKE $1`,
		"%"+fmt.Sprintf("%x", `"N":7,`)+"%")
	w.want(10, `SELECT count(*) FROM `+w.queue("turns")+` WHERE deaths = 2`)
	w.exec(`INSERT INTO edda.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body, deaths)
		SELECT (SELECT id FROM edda.queue WHERE endpoint = 'turns'), 'key-0', due, id, sent, attempt, conflict, kind,
		header, body, deaths
		FROM ` + w.queue("turns") + ` WHERE convert_from(body, 'UTF8') LIKE '%key-0%' ORDER BY due OFFSET 1`)
	w.exec(`DELETE FROM ` + w.queue("turns") + ` q USING edda.parked p WHERE q.due = p.due AND q.id = p.id`)
	w.run(e)
	w.until("all are handled", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.begun) == 200
	})
	if c.suspects != 10 || c.beside > 0 {
		t.Errorf("%d suspects ran, others were beside them %d times", c.suspects, c.beside)
	}
	w.untilEmpty("turns")
	w.want(0, `SELECT count(*) FROM edda.parked`)
}

// A suspect that was claimed behind an innocent message of its lane waits for the messages in hand, and for no others:
// otherwise it would wait until the other lane is empty.
func TestNoLaneGoesOnBeforeASuspect(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var (
		mu      sync.Mutex
		begun   []string
		facing  bool
		isThere string // whether a message is in the queue
	)
	part := bus.Handle(func(ctx *bus.Context, m turn) error {
		name := fmt.Sprint(m.Key, " ", m.N)
		mu.Lock()
		begun = append(begun, name)
		if facing {
			t.Errorf("%s begins beside the suspect", name)
		}
		facing = name == "key-0 1"
		mu.Unlock()
		switch name {
		case "key-1 0": // is in hand until the suspect is the next of its lane
			for there := true; there && run.Sleep(ctx, 5*time.Millisecond) == nil; {
				_ = w.owner.QueryRow(ctx, isThere, turnBody("key-0", 0)).Scan(&there)
			}
		case "key-0 1":
			_ = run.Sleep(ctx, 50*time.Millisecond)
			mu.Lock()
			facing = false
			mu.Unlock()
		}
		return nil
	}, bus.KeyedBy(func(m turn) string { return m.Key }))
	e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Concurrency: 8, Poll: 20 * time.Millisecond},
		part)
	w.makeQueue("turns")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	isThere = w.sql(`SELECT EXISTS (SELECT FROM ` + w.queue("turns") + ` WHERE body = $1)`)
	w.sendTurns(2, 4, nil)
	w.exec(`UPDATE `+w.queue("turns")+` SET deaths = 2, claim = 2 WHERE body = $1`, turnBody("key-0", 1))
	w.run(e)
	w.untilEmpty("turns")
	mu.Lock()
	defer mu.Unlock()
	if suspect, next := slices.Index(begun, "key-0 1"), slices.Index(begun, "key-1 1"); suspect > next {
		t.Errorf("they begin in the order %v: key-1 goes on before the suspect", begun)
	}
}

// A suspect that cannot be marked goes back to the queue, and messages claimed behind it must not overtake it.
func TestASuspectThatGoesBackIsNotOvertaken(t *testing.T) {
	w := newWorld(t, bus.Options{})
	s := newTurns()
	process, proxy := w.proxied()
	_, _ = w.preparedTurns(s, bus.EndpointOptions{Ordered: bus.Strict}, 2, 20)
	w.exec(`UPDATE `+w.queue("turns")+` SET deaths = 2, claim = 2 WHERE body = $1`, turnBody("key-0", 5))
	proxy.Set(faultproxy.Fault{Statement: "mark_alone", N: 1}, faultproxy.Fault{Statement: "mark_alone", N: 2})
	w.startOn(process, "turns", bus.EndpointOptions{Ordered: bus.Strict, Poll: 20 * time.Millisecond}, s.part())
	w.wantTurns(s, 2, 20, true)
	if n := proxy.Seen()["mark_alone"]; n != 3 {
		t.Errorf("it was marked %d times, want it to be tried until it is", n)
	}
}

// A process died with claimed messages of one key, the first of them in hand. That message is blamed, unless a message
// was alone in hand, which then is. The result is the same whether the sweep or a claim finds the messages.
func TestOnlyTheFirstOfALaneIsBlamedForADeath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leases      string
		concurrency int
		alone       int // this message was run alone, -1 for none
		want        string
	}{
		"found by a sweep": {"clock_timestamp()", 1, -1, "1/- -/- -/- | 1/- -/- -/-"},
		"found by a claim": {"clock_timestamp() - interval '1 minute'", 8, -1,
			"1/- -/- -/- | 1/- -/- -/-"},
		"found by one claim after another": {"clock_timestamp() - interval '1 minute'", 1, -1,
			"1/- -/- -/- | 1/- -/- -/-"},
		"alone in hand, found by a sweep": {"clock_timestamp()", 1, 1, "-/- 1/1 -/- | -/- -/- -/-"},
		"alone in hand, found by a claim": {"clock_timestamp() - interval '1 minute'", 8, 1,
			"-/- 1/1 -/- | -/- -/- -/-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			held, release := ended(t)
			e := w.endpoint("turns", bus.EndpointOptions{Ordered: bus.Strict, Concurrency: c.concurrency,
				Lease: 20 * time.Second, Poll: 20 * time.Millisecond},
				bus.Handle(func(*bus.Context, turn) error { <-held; return nil },
					bus.KeyedBy(func(m turn) string { return m.Key })))
			w.makeQueue("turns")
			if err := e.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.sendTurns(2, 3, nil)
			queue, died := w.count(`SELECT id FROM edda.queue WHERE endpoint = 'turns'`),
				w.text(`SELECT gen_random_uuid()::text`)
			w.exec(`INSERT INTO edda.lane (queue, key, owner, session, until) SELECT $1, 'key-' || n, `+
				`gen_random_uuid(), $2, `+c.leases+` FROM generate_series(0, 1) n`, queue, died)
			w.exec(`UPDATE `+w.queue("turns")+` SET was_due = due, due = `+c.leases+
				` + interval '5 seconds', claim = 1, owner = $1`, died)
			if c.alone >= 0 {
				w.exec(`UPDATE `+w.queue("turns")+` SET alone = true WHERE body = $1`, turnBody("key-0", c.alone))
			}
			w.run(e)
			t.Cleanup(release) // before the endpoint is stopped
			deaths := `WITH m AS (
				SELECT convert_from(body, 'UTF8')::json AS m, deaths, deaths_alone, owner FROM ` + w.queue("turns") + `
				UNION ALL SELECT convert_from(body, 'UTF8')::json, deaths, deaths_alone, NULL FROM edda.parked),
				k AS (SELECT string_agg(coalesce(deaths::text, '-') || '/' || coalesce(deaths_alone::text, '-'), ' '
				ORDER BY (m ->> 'N')::int) AS all_of_it FROM m GROUP BY m ->> 'Key' ORDER BY m ->> 'Key')
				SELECT string_agg(all_of_it, ' | ') FROM k`
			var got string
			w.until("both lanes are another's, and the death is counted", func() bool {
				got = w.text(deaths)
				return w.count(`SELECT count(*) FROM edda.lane WHERE session IS DISTINCT FROM $1::text::uuid`,
					died) == 2 &&
					strings.Count(got, "1/") >= strings.Count(c.want, "1/")
			})
			if got != c.want {
				t.Errorf("deaths / alone are %s, want %s", got, c.want)
			}
		})
	}
}

// A message is cancelled while it waits in its lane, and parked after that, because the message before it fails.
func TestCancelReachesAMessageThatIsParkedLater(t *testing.T) {
	w := newWorld(t, bus.Options{})
	g := newGate(t)
	var mu sync.Mutex
	var ran []int
	w.start("turns", bus.EndpointOptions{Ordered: bus.Strict, Lease: time.Minute, Poll: 20 * time.Millisecond,
		Policy: quickly},
		bus.Handle(func(_ *bus.Context, m turn) error {
			mu.Lock()
			defer mu.Unlock()
			if ran = append(ran, m.N); len(ran) == 1 {
				g.pass()
				return errors.New("not yet")
			}
			return nil
		}, bus.KeyedBy(func(m turn) string { return m.Key })))
	t.Cleanup(g.open) // before the endpoint is stopped
	w.send(turn{Key: "k"})
	await(w, "the first", g.came)
	second := w.send(turn{Key: "k", N: 1})
	w.until("the second is claimed", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("turns")+
			` WHERE owner IS NOT NULL`) == 2
	})
	if did, err := w.operator().Messages().Cancel(context.Background(), "turns", second.ID, "by a test"); err != nil ||
		did != operate.CancelledRunning {
		t.Errorf("Cancel: %v, %v", did, err)
	}
	g.open()
	w.send(turn{Key: "k", N: 2})
	w.until("all met their fate", func() bool {
		return w.count(`SELECT (SELECT count(*) FROM `+w.queue("turns")+`) + (SELECT count(*) FROM edda.parked)`) == 0
	})
	if got := fmt.Sprint(ran); got != "[0 0 2]" {
		t.Errorf("ran: %s, want the cancelled one not to", got)
	}
	w.want(1, `SELECT count(*) FROM edda.discarded WHERE reason = 'cancelled: by a test' AND message_id = $1`,
		[16]byte(second.ID))
}
