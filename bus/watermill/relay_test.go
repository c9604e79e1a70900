package watermill_test

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// elsewhere is a Publisher that records its messages.
type elsewhere struct {
	mu     sync.Mutex
	got    []*message.Message
	topics map[string]bool
	now    int // calls at this moment
	most   int
	refuse func(m *message.Message) error
}

func (b *elsewhere) Publish(topic string, messages ...*message.Message) error {
	b.mu.Lock()
	b.now++
	b.most = max(b.most, b.now)
	refuse := b.refuse
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now--
	}()
	for _, m := range messages {
		if refuse != nil {
			if err := refuse(m); err != nil {
				return err
			}
		}
		b.mu.Lock()
		if b.topics == nil {
			b.topics = map[string]bool{}
		}
		b.topics[topic] = true
		b.got = append(b.got, m)
		b.mu.Unlock()
	}
	return nil
}

func (b *elsewhere) Close() error { return errors.New("the publisher is not the relay's to close") }

func (b *elsewhere) all() []*message.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (w *world) installRelay() {
	w.Helper()
	operator, err := operate.New(w.pool, operate.Options{Schema: w.schema})
	if err == nil {
		err = operator.Queues().InstallRelay(w.Context(), "shop.events", "order.paid")
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) runRelay(to *elsewhere, o watermill.RelayOptions) {
	w.Helper()
	w.runRelayTo(to, o)
}

func (w *world) runRelayTo(to message.Publisher, o watermill.RelayOptions) {
	w.Helper()
	o.Poll, o.Retry, o.MaxRetryDelay = 50*time.Millisecond, 2*time.Millisecond, 10*time.Millisecond
	r, err := watermill.NewRelay(w.bus, "shop.events", to, o, "order.paid")
	if err != nil {
		w.Fatal(err)
	}
	pgtest.Run(w.T, "relay", r.Run)
}

func (w *world) pay(n int, o ...saga.SendOption) (ids []string) {
	w.Helper()
	for i := range n {
		sent, err := w.bus.Send(w.Context(), saga.Raw{Name: "order.paid", Body: fmt.Appendf(nil, `{"N":%d}`, i)}, o...)
		if err != nil {
			w.Fatal(err)
		}
		ids = append(ids, sent.ID.String())
	}
	return ids
}

func (w *world) untilRelayed(to *elsewhere, n int) []*message.Message {
	w.Helper()
	deadline := time.After(pgdev.Patience(30 * time.Second))
	for len(to.all()) < n {
		select {
		case <-deadline:
			w.Fatalf("%d messages came, want %d", len(to.all()), n)
		case <-time.After(3 * time.Millisecond):
		}
	}
	return to.all()
}

// A relayed message arrives with its id, its body, its kind, its headers, and its sender.
func TestRelayedMessages(t *testing.T) {
	w := newWorld(t)
	w.installRelay()
	ids := w.pay(20, saga.WithHeader("tenant", "7"))
	to := &elsewhere{}
	w.runRelay(to, watermill.RelayOptions{Topic: "SHOP.events"})
	got := w.untilRelayed(to, 20)
	for n, m := range got {
		want := fmt.Sprintf(`{"N":%d}`, n)
		if m.UUID != ids[n] || string(m.Payload) != want || m.Metadata.Get(watermill.KindKey) != "order.paid" ||
			m.Metadata.Get("tenant") != "7" || len(m.Metadata) != 2 {
			t.Errorf("message %d is %s %s %v", n, m.UUID, m.Payload, m.Metadata)
		}
	}
	if !to.topics["SHOP.events"] || len(to.topics) != 1 {
		t.Errorf("topics %v", to.topics)
	}
}

// With Parallel the messages of one key keep their order, also when some fail, and other messages do not wait for them.
func TestParallelRelayKeepsTheOrderOfKeys(t *testing.T) {
	w := newWorld(t)
	w.installRelay()
	place := map[string]int{}
	for n, id := range w.pay(200) {
		place[id] = n
	}
	key := func(id string) int { return place[id] % 5 }
	fails, together := 8, make(chan struct{}, 200)
	to := &elsewhere{}
	to.refuse = func(m *message.Message) error {
		together <- struct{}{}
		to.mu.Lock()
		defer to.mu.Unlock()
		if key(m.UUID) == 3 && fails > 0 {
			if fails--; fails%3 == 0 {
				panic("a publisher panics")
			}
			return errors.New("not now")
		}
		return nil
	}
	go func() {
		for range 208 {
			<-together
		}
	}()
	w.runRelay(to, watermill.RelayOptions{Parallel: 4,
		Key: func(d *saga.Delivery) string { return fmt.Sprint(key(d.Info.ID.String())) }})
	last := map[int]int{}
	for _, m := range w.untilRelayed(to, 200) {
		k, n := key(m.UUID), place[m.UUID]
		if before, seen := last[k]; seen && n <= before {
			t.Errorf("of key %d message %d came after %d", k, n, before)
		}
		last[k] = n
	}
	if to.most > 4 {
		t.Errorf("%d were published at a time, want 4 at most", to.most)
	}
}

// A function of the user's that panics does not affect other messages, and the relay continues.
func TestRelaySurvivesPanicsOfItsOptions(t *testing.T) {
	w := newWorld(t)
	w.installRelay()
	ids := w.pay(40)
	to := &elsewhere{refuse: func(m *message.Message) error {
		if m.UUID == ids[25] {
			return errors.New("not taken")
		}
		return nil
	}}
	o := watermill.RelayOptions{Parallel: 4, Key: func(d *saga.Delivery) string {
		if d.Info.ID.String() == ids[10] {
			panic("no such key")
		}
		return "one"
	}}
	o.Permanent = func(error) bool { panic("no such code") }
	o.Retry, o.MaxRetryDelay, o.Stuck = time.Millisecond, 5*time.Millisecond, 3
	w.runRelay(to, o)
	var got []string
	for _, m := range w.untilRelayed(to, 38) {
		got = append(got, m.UUID)
	}
	if want := slices.Concat(ids[:10], ids[11:25], ids[26:]); !slices.Equal(got, want) {
		t.Errorf("relayed\n%v, want\n%v", got, want)
	}
	name := pgx.Identifier{w.schema}.Sanitize()
	w.until("two are dead letters", func() bool { return w.left("shop.events") == 0 })
	var letters string
	if err := w.pool.QueryRow(t.Context(), `SELECT string_agg(reason || ' ' || error, '; ' ORDER BY id) FROM `+name+
		`.dead_letter`).Scan(&letters); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)^stuck RelayOptions.Key: panic: no such key.*; stuck not taken.*` +
		`panic: no such code$`)
	if !want.MatchString(letters) {
		t.Error(letters)
	}
}

// The key of a message is unknown because Key panicked. The messages behind it may have the same key, so they wait.
func TestNothingOvertakesAMessageWithoutAKey(t *testing.T) {
	w := newWorld(t)
	w.installRelay()
	ids, asked := w.pay(40), 0
	o := watermill.RelayOptions{Parallel: 4, Key: func(d *saga.Delivery) string {
		if d.Info.ID.String() == ids[10] {
			if asked++; asked <= 2 {
				panic("no key yet")
			}
		}
		return "one"
	}}
	o.Retry, o.MaxRetryDelay = time.Millisecond, 5*time.Millisecond
	to := &elsewhere{}
	w.runRelay(to, o)
	var got []string
	for _, m := range w.untilRelayed(to, 40) {
		got = append(got, m.UUID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("relayed\n%v, want\n%v", got, ids)
	}
}

// batchwise is an elsewhere that accepts several messages at a time.
type batchwise struct{ *elsewhere }

func (batchwise) BatchMax() int { return 8 }

// A Publish that ends its goroutine, as FailNow of package testing does, has failed: its message is not deleted, and no
// message is lost.
func TestPublisherThatEndsItsGoroutineHasFailed(t *testing.T) {
	t.Parallel()
	byID := func(d *saga.Delivery) string { return d.Info.ID.String() }
	for name, c := range map[string]struct {
		o    watermill.RelayOptions
		wrap func(*elsewhere) message.Publisher
	}{
		"one by one": {watermill.RelayOptions{}, func(b *elsewhere) message.Publisher { return b }},
		"by keys": {watermill.RelayOptions{Parallel: 4, Key: byID},
			func(b *elsewhere) message.Publisher { return b }},
		"in batches": {watermill.RelayOptions{}, func(b *elsewhere) message.Publisher { return batchwise{b} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.installRelay()
			ids := w.pay(40)
			var exits atomic.Int64
			to := &elsewhere{refuse: func(m *message.Message) error {
				if slices.Contains(ids[10:16], m.UUID) && exits.Add(1) <= 20 {
					runtime.Goexit()
				}
				return nil
			}}
			w.runRelayTo(c.wrap(to), c.o)
			w.until("all are relayed", func() bool { return w.left("shop.events") == 0 })
			seen := map[string]bool{}
			for _, m := range to.all() {
				seen[m.UUID] = true
			}
			if len(seen) != len(ids) {
				t.Errorf("%d messages arrived, want %d", len(seen), len(ids))
			}
		})
	}
}

func TestWatermillRelaysAreRefused(t *testing.T) {
	w := newWorld(t)
	byID := func(d *saga.Delivery) string { return d.Info.ID.String() }
	for _, c := range []struct {
		to   message.Publisher
		o    watermill.RelayOptions
		want string
	}{
		{nil, watermill.RelayOptions{}, "the publisher is nil"},
		{&elsewhere{}, watermill.RelayOptions{Parallel: -1}, "Parallel is -1, want 1 to 1000 (0 is the default, 1)"},
		{&elsewhere{}, watermill.RelayOptions{Parallel: 1001}, "Parallel is 1001"},
		{&elsewhere{}, watermill.RelayOptions{Key: byID}, "Key is set and Parallel is not"},
		{&elsewhere{}, watermill.RelayOptions{RelayOptions: outbox.RelayOptions{BatchMax: -1}}, "BatchMax is -1"},
	} {
		if _, err := watermill.NewRelay(w.bus, "shop.events", c.to, c.o); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
