package whereabouts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type work struct{ Key string }

func (work) Kind() string { return "work" }

const nobodyRuns = " No process runs the endpoint."

func works(context.Context, work) error { return nil }

// doing is a part whose handler calls do.
func doing(do func(ctx context.Context, m work) error) bus.Part {
	return bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m work) error { return do(ctx, m) })
}

func asAnn(t *testing.T) context.Context {
	t.Helper()
	return operate.WithActor(t.Context(), operate.Actor{Name: "ann"})
}

func TestMessagesThatWaitSayWhy(t *testing.T) {
	w := newWorld(t, bus.Options{})
	e := w.endpoint("tasks", bus.EndpointOptions{}, doing(works))
	first, second := w.send(work{}), w.send(work{})
	third, later := w.send(work{}), w.send(work{}, saga.Delay(3*time.Hour))
	w.is(first, "waiting: It waits in the queue of tasks, and is the next."+nobodyRuns)
	w.is(second, "waiting: It waits in the queue of tasks behind 1 message."+nobodyRuns)
	w.is(third, "waiting: It waits in the queue of tasks behind 2 messages."+nobodyRuns)
	m := w.is(later, "delayed: It is due in SPAN, at TIME, in the queue of tasks."+nobodyRuns)
	if p := m.Places[0]; p.In < 2*time.Hour || p.In > 3*time.Hour || m.Info.Kind != "work" || p.Attempt != 1 {
		t.Errorf("%+v", m)
	}
	if err := w.op.Endpoints().Pause(asAnn(t), "tasks", "closed until 14:00."); err != nil {
		t.Fatal(err)
	}
	paused := " The endpoint is paused since TIME by ann: closed until 14:00."
	w.is(second, "waiting: It waits in the queue of tasks behind 1 message."+paused)
	w.run(e)
	w.is(later, "delayed: It is due in SPAN, at TIME, in the queue of tasks."+paused)
	if err := w.op.Endpoints().Resume(t.Context(), "tasks"); err != nil {
		t.Fatal(err)
	}
	w.is(second, "handled: tasks handled it at TIME.")
	w.is(later, "delayed: It is due in SPAN, at TIME, in the queue of tasks.")
	if _, err := w.op.Messages().Cancel(t.Context(), "tasks", later, "no longer wanted"); err != nil {
		t.Fatal(err)
	}
	w.is(later, "discarded: tasks discarded it at TIME: cancelled: no longer wanted.")
	unknown := w.is(saga.ID{1}, "unknown: It is in no queue, and the history has no record of it. It was never "+
		"here, or it was handled longer ago than history keeps, or in an endpoint or a conversation without history.")
	if unknown.Known() || !m.Known() {
		t.Error("what is known is mistaken")
	}
}

func TestMessagesInHandSayWhose(t *testing.T) {
	w := newWorld(t, bus.Options{})
	hold, let := make(chan struct{}), make(chan struct{})
	wait := func(ctx context.Context, _ work) error {
		select {
		case hold <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-let:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	batch := w.start("batch", bus.EndpointOptions{Concurrency: 1}, doing(wait))
	id := w.send(work{})
	<-hold
	w.is(id, "in hand: A worker of batch has it in hand.")
	let <- struct{}{}
	w.is(id, "handled: batch handled it at TIME.")
	batch()
	w.start("leased", bus.EndpointOptions{Lease: 3 * time.Second},
		bus.Handle(func(ctx *bus.Context, m work) error { return wait(ctx, m) }))
	id = w.send(work{}, saga.To("leased"))
	<-hold
	m := w.is(id, "in hand: PROCESS has it in hand for leased; its lease ends in SPAN, at TIME, unless it is extended.")
	if p := m.Places[0]; p.In > 3*time.Second || p.In <= 0 || p.Until.IsZero() || p.At.After(p.Until) {
		t.Errorf("%+v", p)
	}
	if _, err := w.op.Messages().Cancel(t.Context(), "leased", id, "too slow"); err != nil {
		t.Fatal(err)
	}
	w.until("the handler was told", func() bool {
		return strings.Contains(strings.Join(says(ptr(w.message(id))), ""), "discarded it at TIME: cancelled: too slow")
	})
}

func ptr[T any](v T) *T { return &v }

// The lease of a killed process is reported as lost, also for a message behind the lane of that process.
func TestMessagesOfOtherProcesses(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.endpoint("tasks", bus.EndpointOptions{}, doing(works))
	id := w.send(work{})
	w.exec(`INSERT INTO edda.session (id, host, pid, queues, locked, expires, ended, died) VALUES
		('00000000-0000-0000-0000-000000000007', 'far', 17, '{1}', false, now(), now(), true),
		('00000000-0000-0000-0000-000000000008', 'near', 18, '{1}', false, now() + interval '1 hour', NULL, false)`)
	w.exec(`UPDATE edda.queue_1 q SET owner = '00000000-0000-0000-0000-000000000007', claim = 1, was_due = due,
		due = now() + interval '1 hour', cancelled = 'why not'`)
	w.is(id, "in hand: PROCESS has it in hand for tasks; its lease ends in SPAN, at TIME, unless it is extended. That "+
		"process has ended: the message is due again when the lease ends. Its cancellation was requested: "+
		"why not.")
	first, second := w.send(work{}), w.send(work{})
	w.exec(`WITH q AS (DELETE FROM edda.queue_1 q WHERE owner IS NULL RETURNING *)
		INSERT INTO edda.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body)
		SELECT 1, '7', q.due, q.id, q.sent, q.attempt, q.conflict, q.kind, q.header, q.body FROM q`)
	w.exec(`INSERT INTO edda.lane (queue, key, owner, session, until) VALUES (1, '7', gen_random_uuid(),
		'00000000-0000-0000-0000-000000000008', now() + interval '1 minute')`)
	const ends = "; its lease ends in SPAN, at TIME, unless it is extended."
	m := w.is(first, "parked: It is parked in tasks: it is the next of its key 7, and PROCESS has one in hand"+ends)
	if p := m.Places[0]; p.In > time.Minute || p.In < 30*time.Second || p.Process != "near (process 18)" {
		t.Errorf("%+v", p)
	}
	w.is(second, "parked: It is parked in tasks: 1 message of its key 7 is before it, and PROCESS has one in hand"+ends)
	const over = " That process has ended: a different process takes over its messages when the lease has " +
		"ended."
	for session, want := range map[int]string{
		7: "PROCESS has one in hand" + ends + over,
		9: "an unknown process has one in hand" + ends,
	} {
		w.exec(fmt.Sprintf(`UPDATE edda.lane SET session = '00000000-0000-0000-0000-%012d'`, session))
		w.is(first, "parked: It is parked in tasks: it is the next of its key 7, and "+want)
	}
	w.exec(`UPDATE edda.lane SET session = '00000000-0000-0000-0000-000000000007', until = now() - interval '1 second'`)
	w.is(first, "parked: It is parked in tasks: it is the next of its key 7, and the lease of PROCESS, which had one "+
		"in hand, ended at TIME."+over)
	w.exec(`UPDATE edda.lane SET owner = NULL, session = NULL, until = now(), waits_due = now() + interval '1 hour',
		waits_id = gen_random_uuid()`)
	w.is(first, "parked: It is parked in tasks: it is the next of its key 7, and an earlier message is retried in "+
		"SPAN, at TIME.")
}

// A pause of a partitioned endpoint stops no partition, and a message that a partition has handled is reported once.
func TestMessagesOfPartitions(t *testing.T) {
	w := newWorld(t, bus.Options{})
	for _, name := range []string{"tasks", "tasks.p0"} {
		w.endpoint(name, bus.EndpointOptions{DirectOnly: true}, doing(works))
	}
	id := w.send(work{}, saga.To("tasks.p0"))
	if err := w.op.Endpoints().Pause(asAnn(t), "tasks", ""); err != nil {
		t.Fatal(err)
	}
	w.is(id, "waiting: It waits in the queue of tasks.p0, and is the next."+nobodyRuns)
	stop := w.start("tasks.p0", bus.EndpointOptions{DirectOnly: true}, doing(works))
	w.is(id, "handled: tasks.p0 handled it at TIME.")
	stop()
	w.exec(`INSERT INTO edda.queue_1 (due, id, kind, header, body)
		SELECT now(), '` + id.String() + `', 'work', '{}', '{}'`)
	w.is(id, "waiting: It waits in the queue of tasks, and is the next. The endpoint is paused since TIME by ann.")
}

// While messages are handled, each of them is in one place at each moment.
func TestMessagesThatMoveAreFound(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("tasks", bus.EndpointOptions{Concurrency: 1, BatchMax: 1}, doing(works))
	for range 300 {
		id := w.send(work{})
		for {
			m := w.message(id)
			if len(m.Places) != 1 {
				t.Fatalf("it is in %d places: %q", len(m.Places), says(&m))
			}
			state := m.Places[0].State
			if state == whereabouts.Handled {
				break
			}
			if !state.Open() {
				t.Fatalf("it is %s", says(&m))
			}
		}
	}
}

var errBank = errors.New("the bank is closed\nfor today")

func TestMessagesThatFailedSayWhy(t *testing.T) {
	w := newWorld(t, bus.Options{})
	policy := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt == 1 {
			return recoverability.RetryIn(time.Hour)
		}
		return recoverability.DeadLetter()
	}
	w.start("tasks", bus.EndpointOptions{Policy: policy},
		doing(func(context.Context, work) error { return errBank }))
	id := w.send(work{})
	m := w.is(id, "retrying: Attempt 1 in tasks failed: the bank is closed…. Attempt 2 follows in SPAN, at TIME.")
	if len(m.Attempts) != 1 || m.Attempts[0].Error != errBank.Error() {
		t.Errorf("%+v", m.Attempts)
	}
	w.exec(`UPDATE edda.queue_1 SET due = now()`)
	w.op.Wake(t.Context(), "tasks")
	m = w.is(id, "dead: It is dead letter 1 of tasks since TIME, after 2 attempts: the bank is closed….")
	if err := w.op.DeadLetters().Discard(t.Context(), m.Places[0].Letter, "a test"); err != nil {
		t.Fatal(err)
	}
	m = w.is(id, "discarded: tasks discarded it at TIME: a test.")
	if len(m.Attempts) != 2 || m.Attempts[1].Fate != history.Died {
		t.Errorf("%+v", m.Attempts)
	}
	w.exec(`DELETE FROM edda.discarded`)
	w.is(id, "gone: Attempt 2 in tasks failed at TIME: the bank is closed…. It was a dead letter, and has been "+
		"retried, edited or discarded since.")
}

// A message that waits for a retry reports its last attempt; if no page records its later attempts, it reports that.
func TestFailedMessagesWithoutHistory(t *testing.T) {
	w := newWorld(t, bus.Options{History: history.Options{Sample: 1e-9}})
	fail := true
	e := w.endpoint("tasks", bus.EndpointOptions{Concurrency: 1,
		Policy: func(recoverability.Failure) recoverability.Decision { return recoverability.RetryIn(time.Hour) }},
		doing(func(context.Context, work) error {
			if fail {
				return errBank
			}
			return nil
		}))
	stop := w.run(e)
	id := w.send(work{})
	w.is(id, "retrying: Attempt 1 in tasks failed: the bank is closed…. Attempt 2 follows in SPAN, at TIME.")
	stop()
	w.exec(`UPDATE edda.queue_1 SET due = now()`)
	w.is(id, "waiting: It waits in the queue of tasks, and is the next, for attempt 2. Attempt 1 failed: the bank is "+
		"closed…."+nobodyRuns)
	fail = false
	w.run(e)
	w.is(id, "gone: Attempt 1 in tasks failed at TIME: the bank is closed…. It is in no queue any more, and the "+
		"history has no later record of it: its endpoint, or its conversation, keeps no history of "+
		"handled messages, or it is longer ago than history keeps.")
}

func TestMessagesOfOtherSystems(t *testing.T) {
	w := newWorld(t, bus.Options{})
	relay, err := bus.NewRelay(w.bus, "shop", outbox.RelayOptions{Keep: time.Hour, Poll: 50 * time.Millisecond},
		func(_ context.Context, m []*saga.Delivery) []error { return make([]error, len(m)) }, work{}.Kind())
	if err == nil {
		err = relay.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	id := w.send(work{})
	w.is(id, "waiting: It waits in the queue of the relay shop, and is the next. No process runs the relay.")
	w.run(relay)
	w.is(id, "relayed: The relay shop gave it to the other side at TIME.")
	if kept, err := w.op.Outbox().KeptOf(t.Context(), w.pool, id, saga.ID{1}); err != nil || len(kept) != 1 ||
		kept[0].Endpoint != "shop" || kept[0].Size < 2 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// Sentences of places that the tests above do not produce.
func TestPlacesInWords(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		p    whereabouts.Place
		want string
	}{
		{whereabouts.Place{State: whereabouts.Waiting, Endpoint: "a", Before: whereabouts.MostBefore},
			"It waits in the queue of a behind 100000 messages or more."},
		{whereabouts.Place{State: whereabouts.Parked, Endpoint: "a", Key: "k", Before: 2, Until: at,
			In: 90 * time.Second},
			"It is parked in a: 2 messages of its key k are before it, and an earlier message is retried in 2m, at " +
				"2026-03-01 12:00:00.000Z."},
		{whereabouts.Place{State: whereabouts.Dead, Endpoint: "a", At: at, Attempt: 1, Error: "no"},
			"It failed for good in a at 2026-03-01 12:00:00.000Z, after 1 attempt, and its run failed: no."},
		{whereabouts.Place{State: whereabouts.Handled, Endpoint: "a", At: at, Attempt: 3, Did: ", and began order 7"},
			"a handled it at 2026-03-01 12:00:00.000Z at attempt 3, and began order 7."},
		{whereabouts.Place{State: whereabouts.Ingested, Endpoint: "a", At: at},
			"It came in from an external system through a at 2026-03-01 12:00:00.000Z. It is in no queue, and the " +
				"history has no later record of it."},
		{whereabouts.Place{State: whereabouts.Cancelled, Endpoint: "a", At: at},
			"Its saga has cancelled it in a at 2026-03-01 12:00:00.000Z."},
		{whereabouts.Place{State: whereabouts.Delayed, Endpoint: "a", At: at, In: 73 * time.Hour},
			"It is due in 3 days, at 2026-03-01 12:00:00.000Z, in the queue of a."},
		{whereabouts.Place{State: whereabouts.Discarded, Endpoint: "a", At: at, Reason: strings.Repeat("é", 300)},
			"a discarded it at 2026-03-01 12:00:00.000Z: " + strings.Repeat("é", 199) + "…."},
	} {
		if got := c.p.Says(); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.p.State, got, c.want)
		}
	}
}
