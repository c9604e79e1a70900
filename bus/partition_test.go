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
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type greet struct{ Key string }
type question struct{ Key string }
type answer struct{ Key string }
type later struct{}

func (greet) Kind() string    { return "chat.greet" }
func (question) Kind() string { return "chat.question" }
func (answer) Kind() string   { return "chat.answer" }
func (later) Kind() string    { return "chat.later" }

type chat struct{ Greeted, Answered, Late int }

// chats is a saga that asks a question, and waits after the answer.
func chats(wait time.Duration) *saga.Definition {
	return saga.Define("chat", saga.Options{Store: saga.Optimistic},
		saga.StartedBy(func(m greet) string { return m.Key }, func(s *chat, ctx *saga.Context, m greet) error {
			s.Greeted++
			ctx.Send(question(m))
			return nil
		}),
		saga.OnReply(func(s *chat, ctx *saga.Context, _ answer) error {
			s.Answered++
			ctx.Timeout(wait, later{})
			return nil
		}),
		saga.OnTimeout(func(s *chat, _ *saga.Context, _ later) error { s.Late++; return nil }),
	)
}

func replies(ctx *bus.Context, _ pgx.Tx, m question) error {
	ctx.Reply(answer(m))
	return nil
}

func soon(partitions int) bus.PartitionOptions {
	return bus.PartitionOptions{Partitions: partitions, Lease: 2 * time.Second,
		Endpoint: bus.EndpointOptions{Poll: 50 * time.Millisecond}}
}

func (w *world) partitioned(b *bus.Bus, name string, o bus.PartitionOptions, parts ...bus.Part) *bus.Partitioned {
	w.t.Helper()
	p, err := bus.NewPartitioned(b, name, o, parts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// runPartitioned runs p until the test or stop ends it. It is installed already.
func (w *world) runPartitioned(p *bus.Partitioned) (stop func()) {
	w.t.Helper()
	return pgtest.Run(w.t, "partitioned endpoint "+p.Name(), p.Run)
}

func (w *world) untilHandled(kind string, n int) (found []event.Handled) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d of %s are handled", n, kind), func() bool {
		found = slices.DeleteFunc(eventsOf[event.Handled](w), func(e event.Handled) bool { return e.Info.Kind != kind })
		return len(found) >= n
	})
	return found
}

// wantAtHome checks that each message was handled in the partition of its key.
func (w *world) wantAtHome(handled []event.Handled, endpoint string, partitions int) {
	w.t.Helper()
	for _, e := range handled {
		if want := fmt.Sprintf("%s.p%d", endpoint, bus.PartitionOf(e.Key, partitions)); e.Endpoint != want {
			w.t.Errorf("%s of key %s was handled in %s, want %s", e.Info.Kind, e.Key, e.Endpoint, want)
		}
	}
}

const talks = 40

func (w *world) greetAll() {
	w.t.Helper()
	for n := range talks {
		w.send(greet{Key: fmt.Sprint(n)})
	}
}

// S4-52, S4-55: every message of an instance is handled in its partition: messages with its key, answers and timeouts.
func TestMessagesOfAnInstanceMeetInItsPartition(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("oracle", bus.EndpointOptions{}, bus.HandleTx(replies))
	w.installPartitioned("chat", soon(5), bus.Saga(chats(0)))
	one := w.partitioned(w.bus, "chat", soon(5), bus.Saga(chats(0)))
	two := w.partitioned(w.process(pgdev.DSN(t), bus.Options{}), "chat", soon(5), bus.Saga(chats(0)))
	w.runPartitioned(one)
	stop := w.runPartitioned(two)
	w.until("they share", func() bool {
		held := append(one.Holding(), two.Holding()...)
		return len(held) == 6 && min(len(one.Holding()), len(two.Holding())) >= 2
	})
	w.greetAll()
	for _, kind := range []string{"chat.greet", "chat.answer", "chat.later"} {
		w.wantAtHome(w.untilHandled(kind, talks), "chat", 5)
	}
	w.want(talks, `SELECT count(*) FROM edda.saga WHERE state::text = '{"Greeted":1,"Answered":1,"Late":1}'`)
	stop()
	w.until("who stays has everything", func() bool { return len(one.Holding()) == 6 })
	if c := eventsOf[event.Conflicted](w); len(c) > 0 {
		t.Errorf("conflicts: %v", c)
	}
	if _, err := w.bus.Send(t.Context(), greet{Key: "x"}, saga.To("chat.p9")); !errors.Is(err, bus.ErrNoRoute) {
		t.Errorf("to a partition that is not there: %v", err)
	}
}

// The distributor wakes the partition that it moves a message to. Workers poll once an hour.
func TestMovedMessageWakesItsPartition(t *testing.T) {
	w := newWorld(t, bus.Options{})
	o := soon(1)
	o.Endpoint.Poll = time.Hour
	done := make(chan int, 10)
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m turn) error { done <- m.N; return nil },
		bus.KeyedBy(func(m turn) string { return m.Key }))
	w.installPartitioned("turns", o, part)
	w.runPartitioned(w.partitioned(w.bus, "turns", o, part))
	for n := range 5 { // the first take of each may find the first messages
		w.send(turn{Key: "k", N: n})
		await(w, "the handler", done)
	}
}

// Sagas that were started in a plain endpoint continue in partitions. Then the number of partitions changes, and
// timeouts that were waiting fire in the new partition of their key.
func TestNumberOfPartitionsChanges(t *testing.T) {
	w := newWorld(t, bus.Options{})
	parts := []bus.Part{bus.Saga(chats(time.Hour))}
	w.run(w.endpoint("oracle", bus.EndpointOptions{}, bus.HandleTx(replies)))() // installed, and not running
	stop := w.start("chat", bus.EndpointOptions{}, parts...)
	w.greetAll()
	w.untilHandled("chat.greet", talks)
	stop()

	w.installPartitioned("chat", soon(8), parts...)
	eight := w.partitioned(w.bus, "chat", soon(8), parts...)
	stop = w.runPartitioned(eight)
	w.start("oracle", bus.EndpointOptions{}, bus.HandleTx(replies))
	w.wantAtHome(w.untilHandled("chat.answer", talks), "chat", 8)
	operator, err := operate.New(w.owner, operate.Options{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := operator.Endpoints().SetPartitions(t.Context(), "chat", 3); !errors.Is(err, operate.ErrRunning) {
		t.Errorf("another number while it runs: %v", err)
	}
	stop()

	three := w.partitioned(w.bus, "chat", soon(3), parts...)
	soonOver, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for call, err := range map[string]error{"Check": three.Check(t.Context()), "Run": three.Run(soonOver),
		"Install": three.Install(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "8, and the options have 3: set "+
			"PartitionOptions.Partitions to 8, or") {
			t.Errorf("%s with another number: %v", call, err)
		}
	}
	if _, moved, err := operator.Endpoints().SetPartitions(t.Context(), "chat", 3); err != nil || moved != talks {
		t.Fatalf("%d messages were moved, %v; want %d", moved, err, talks)
	}
	w.want(talks, `SELECT count(*) FROM `+w.queue("chat"))
	w.exec(`UPDATE ` + w.queue("chat") + ` SET due = now()`)
	w.runPartitioned(three)
	w.wantAtHome(w.untilHandled("chat.later", talks), "chat", 3)
	// An answer to an old question comes to a partition that no longer exists.
	w.exec(`INSERT INTO ` + w.queue("chat.p7") +
		` (due, id, kind, header, body) VALUES (now(), gen_random_uuid(), 'chat.greet', '{}', '{"Key":"late"}')`)
	w.wantAtHome(w.untilHandled("chat.greet", talks+1)[talks:], "chat", 3)
}

func (w *world) ownersBus() *bus.Bus {
	w.t.Helper()
	b, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// A process freezes in the middle of a batch, for longer than its lease. Other processes skip the messages that it has
// locked, so no process may own the partition while they are locked. The same holds for the distributor.
func TestNoTermBeginsWhileABatchIsOpen(t *testing.T) {
	w := newWorld(t, bus.Options{})
	stand := newGate(t)
	part := bus.HandleTx(func(*bus.Context, pgx.Tx, turn) error { stand.pass(); return nil },
		bus.KeyedBy(func(m turn) string { return m.Key }))
	o := soon(1)
	o.Endpoint.StepTimeout = time.Minute
	w.installPartitioned("turns", o, part)
	w.runPartitioned(w.partitioned(w.bus, "turns", o, part))
	w.send(turn{Key: "a"})
	await(w, "a batch", stand.came)
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		t.Fatal(err)
	}
	store := lease.New(schema)
	bid := func() bool {
		w.exec(`UPDATE edda.lease SET expires = clock_timestamp() WHERE name = 'partition/turns/turns.p0'`)
		_, ok, err := store.Acquire(t.Context(), w.owner,
			lease.Bid{Name: "partition/turns/turns.p0", Holder: "other", Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	defer stand.open()
	if bid() {
		t.Error("another has the partition, while a batch of it is open")
	}
	stand.open()
	w.untilHandled("turn.take", 1)
	w.until("another has the partition", bid)
}

// Messages of a key that HandleTx has are handled in order; a message without a key becomes a dead letter before it
// reaches a partition, and a kind without a handler waits there.
func TestKeysOfHandleTx(t *testing.T) {
	w := newWorld(t, bus.Options{})
	var mu sync.Mutex
	taken := map[string][]int{}
	part := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m turn) error {
		mu.Lock()
		defer mu.Unlock()
		taken[m.Key] = append(taken[m.Key], m.N)
		return nil
	}, bus.KeyedBy(func(m turn) string { return m.Key }))
	o := soon(3)
	o.Endpoint.UnknownKindTimeout = time.Millisecond
	w.installPartitioned("turns", o, part)
	p := w.partitioned(w.bus, "turns", o, part)
	w.runPartitioned(p)
	w.sendTurns(10, 20, nil)
	w.send(turn{})
	w.send(greet{Key: "a"}, saga.To("turns"))
	w.untilHandled("turn.take", 200)
	mu.Lock()
	for key, seen := range taken {
		if len(seen) != 20 || !slices.IsSorted(seen) {
			t.Errorf("%s: %v", key, seen)
		}
	}
	mu.Unlock()
	w.until("two letters are dead", func() bool {
		return w.count(
			`SELECT count(*) FROM edda.dead_letter WHERE endpoint = 'turns'`) == 2
	})
	if err := p.Run(t.Context()); !errors.Is(err, bus.ErrRunning) {
		t.Errorf("a second Run: %v", err)
	}
}

// S4-38, S4-55: two endpoints have one saga. One is subscribed; the other receives only messages that name it.
func TestAddressedEndpoint(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.start("oracle", bus.EndpointOptions{}, bus.HandleTx(replies))
	w.start("chat", bus.EndpointOptions{}, bus.Saga(chats(0)))
	w.start("chat.blue", bus.EndpointOptions{DirectOnly: true, Concurrency: 1}, bus.Saga(chats(0)))
	w.send(greet{Key: "plain"})
	w.send(greet{Key: "blue"}, saga.To("chat.blue"))
	for _, kind := range []string{"chat.greet", "chat.answer", "chat.later"} {
		for _, e := range w.untilHandled(kind, 2) {
			if want := map[string]string{"plain": "chat", "blue": "chat.blue"}[e.Key]; e.Endpoint != want {
				t.Errorf("%s of %s was handled in %s", kind, e.Key, e.Endpoint)
			}
		}
	}
	w.want(0, `SELECT count(*) FROM edda.subscription s JOIN edda.queue q ON q.id = s.queue
		WHERE q.endpoint = 'chat.blue'`)
}

func TestPartitionedEndpointsAreRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	keyed := bus.HandleTx(hears, bus.KeyedBy(func(m shipped) string { return m.Order }))
	raw := bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { return nil })
	leased := bus.Handle(func(*bus.Context, shipped) error { return nil })
	for _, c := range []struct {
		name  string
		o     bus.PartitionOptions
		parts []bus.Part
		want  string
	}{
		{"p", bus.PartitionOptions{Partitions: -1}, []bus.Part{keyed}, "Partitions is -1, want 1 to 256 (0 is the " +
			"default, 8)"},
		{"p", bus.PartitionOptions{Partitions: 257}, []bus.Part{keyed}, "Partitions is 257"},
		{"p", bus.PartitionOptions{Lease: time.Second}, []bus.Part{keyed}, "Lease is 1s, want 2s to 1h"},
		{"p", bus.PartitionOptions{Lease: -1}, []bus.Part{keyed}, "Lease is -1ns"},
		{"p", bus.PartitionOptions{Holder: "a\nb"}, []bus.Part{keyed}, "control characters"},
		{"p", bus.PartitionOptions{Endpoint: bus.EndpointOptions{Concurrency: 2}}, []bus.Part{keyed},
			"raise Partitions instead"},
		{"p", bus.PartitionOptions{Endpoint: bus.EndpointOptions{Concurrency: -2}}, []bus.Part{keyed},
			"Concurrency is -2"},
		{"p", bus.PartitionOptions{Endpoint: bus.EndpointOptions{ClusterConcurrency: 1}}, []bus.Part{keyed},
			"ClusterConcurrency"},
		{"p", bus.PartitionOptions{Endpoint: bus.EndpointOptions{Ordered: bus.Strict}}, []bus.Part{keyed},
			"Ordered is for endpoints with Handle"},
		{"p", bus.PartitionOptions{Endpoint: bus.EndpointOptions{BatchTime: -1}}, []bus.Part{keyed},
			"BatchTime is -1ns"},
		{"P", bus.PartitionOptions{}, []bus.Part{keyed}, "beginning with a letter"},
		{strings.Repeat("p", 61), bus.PartitionOptions{}, []bus.Part{keyed}, "beginning with a letter"},
		{"p", bus.PartitionOptions{}, nil, "it handles no message"},
		{"p", bus.PartitionOptions{}, []bus.Part{bus.HandleTx(hears)}, "order.shipped has no key: give it a KeyedBy"},
		{"p", bus.PartitionOptions{}, []bus.Part{leased}, "with EndpointOptions.Ordered"},
		{"p", bus.PartitionOptions{}, []bus.Part{raw}, "HandleRaw has no keys"},
	} {
		if _, err := bus.NewPartitioned(w.bus, c.name, c.o, c.parts...); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.name, c.o, err, c.want)
		}
	}
	if _, err := bus.NewEndpoint(w.bus, "p", bus.EndpointOptions{}, keyed); err == nil ||
		!strings.Contains(err.Error(), "the endpoint has no partitions") {
		t.Errorf("a key without partitions: %v", err)
	}
	if _, err := bus.NewPartitioned(nil, "p", bus.PartitionOptions{}, keyed); err == nil {
		t.Error("no bus")
	}
	p := w.partitioned(w.processWithoutInstall(), "p", bus.PartitionOptions{}, keyed)
	if err := p.Run(t.Context()); !errors.Is(err, bus.ErrNotInstalled) {
		t.Errorf("Run of what is not installed: %v", err)
	}
}

func (w *world) processWithoutInstall() *bus.Bus {
	w.t.Helper()
	b, err := bus.New(w.pool, bus.Options{Schema: w.schema})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}
