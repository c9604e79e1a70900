package changing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Before the names changed.
type oldMember struct{ Member }

func (m *oldMember) join(ctx *saga.Context, _ Join) error {
	ctx.Timeout(payWithin, MemberDue{}, saga.Named("fee"))
	return nil
}

var oldMembers = saga.Define("member", saga.Options{},
	saga.StartedBy(func(m Join) string { return m.Email }, (*oldMember).join),
	saga.Handles(func(m MemberPaid) string { return m.Email },
		func(*oldMember, *saga.Context, MemberPaid) error { return errors.New("not yet") }),
	saga.OnTimeout(func(*oldMember, *saga.Context, MemberDue) error { return errors.New("not yet") }))

// A message and a timeout that have waited under their old names reach the handlers of the new names.
func TestRenamedKindsReachTheirHandlers(t *testing.T) {
	t.Parallel()
	pool, b := newBus(t, bus.Options{})
	before, err := bus.NewEndpoint(b, "members", bus.EndpointOptions{}, bus.Saga(oldMembers))
	check(t, err)
	check(t, before.Install(t.Context()))
	stop := start(t, before)
	send(t, b, Join{Email: "ann"})
	await(t, b, "ann", func(Member) bool { return true })
	stop()
	send(t, b, MemberPaid{Email: "ann"})

	after, err := endpoint(b)
	check(t, err)
	defer start(t, after)()
	fire(t, pool, "ann")
	await(t, b, "ann", func(m Member) bool { return m.Fees == 1 && m.Reminded })
}

type ask struct{}
type oldAnswer struct{}
type answer struct{}

func (ask) Kind() string       { return "fee.ask" }
func (oldAnswer) Kind() string { return "member.answer" }
func (answer) Kind() string    { return "fee.answer" }

// An answer under the old name of its kind finds the instance that asked.
func TestRenamedAnswerFindsItsInstance(t *testing.T) {
	t.Parallel()
	_, b := newBus(t, bus.Options{})
	def := saga.Define("member", saga.Options{},
		saga.StartedBy(func(m Join) string { return m.Email }, func(_ *Member, ctx *saga.Context, _ Join) error {
			ctx.Send(ask{})
			return nil
		}),
		saga.OnReply(func(m *Member, _ *saga.Context, _ answer) error { return m.Paid(nil, FeePaid{}) }))
	asking, err := bus.NewEndpoint(b, "members", bus.EndpointOptions{}, bus.Saga(def),
		bus.Accept(func(oldAnswer) (answer, error) { return answer{}, nil }))
	check(t, err)
	answering, err := bus.NewEndpoint(b, "fees", bus.EndpointOptions{},
		bus.Handle(func(ctx *bus.Context, _ ask) error {
			ctx.Reply(oldAnswer{})
			return nil
		}))
	check(t, err)
	check(t, errors.Join(asking.Install(t.Context()), answering.Install(t.Context())))
	defer start(t, asking, answering)()
	send(t, b, Join{Email: "ann"})
	await(t, b, "ann", func(m Member) bool { return m.Fees == 1 })
}

// newMember is a newer form of the state.
type newMember struct {
	Paid []string `json:"paid"`
}

var newMembers = saga.Define("member", saga.Options{StateVersion: 2},
	saga.StartedBy(func(m Join) string { return m.Email }, func(*newMember, *saga.Context, Join) error { return nil }),
	saga.Handles(func(m FeePaid) string { return m.Email }, func(n *newMember, ctx *saga.Context, _ FeePaid) error {
		n.Paid = append(n.Paid, ctx.Info().ID.String())
		return nil
	}),
	saga.OnTimeout(func(*newMember, *saga.Context, FeeDue) error { return nil }),
	saga.Upcast(1, func(m Member) (newMember, error) { return newMember{Paid: make([]string, m.Fees)}, nil }))

// A release is rolled back and deployed again: the messages that the older program could not read have waited for it.
func TestBackAndForwardAgainLosesNothing(t *testing.T) {
	t.Parallel()
	waits := waitsFor("edda: messages wait for a newer program")
	_, b := newBus(t, bus.Options{Logger: slog.New(waits)})
	older, err := endpoint(b)
	check(t, err)
	newer, err := bus.NewEndpoint(b, "members", bus.EndpointOptions{}, bus.Saga(newMembers))
	check(t, err)
	check(t, newer.Install(t.Context()))

	stop := start(t, newer)
	send(t, b, Join{Email: "ann"})
	awaitLiving(t, b, "ann")
	stop()
	stop = start(t, older)
	send(t, b, FeePaid{Email: "ann"})
	select {
	case <-waits.seen:
	case <-within(t, time.Minute).Done():
		t.Fatal("no message waits for a newer program")
	}
	send(t, b, Join{Email: "bob"}) // other instances are not blocked
	await(t, b, "bob", func(Member) bool { return true })
	stop()
	defer start(t, newer)()
	for seen, err := range b.Watch(within(t, 30*time.Second), newMembers, "ann", bus.WatchCursor{}) { // not a minute
		check(t, err)
		var n newMember
		check(t, seen.Into(&n))
		if len(n.Paid) == 1 {
			return
		}
	}
	t.Fatal("the message still waits for a newer program")
}

// waiting is a log that waits for a line.
type waiting struct {
	slog.Handler
	text string
	seen chan struct{}
}

func waitsFor(text string) waiting {
	return waiting{Handler: slog.DiscardHandler, text: text, seen: make(chan struct{}, 1)}
}

func (waiting) Enabled(context.Context, slog.Level) bool { return true }

func (w waiting) Handle(_ context.Context, r slog.Record) error {
	if r.Message == w.text {
		select {
		case w.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// awaitLiving waits until there is a member.
func awaitLiving(t *testing.T, b *bus.Bus, email string) {
	t.Helper()
	for seen, err := range b.Watch(t.Context(), Members, email, bus.WatchCursor{}) {
		check(t, err)
		if seen.Status == bus.InstanceLiving {
			return
		}
	}
}

// An endpoint that no longer handles a kind still receives it until it is unsubscribed.
func TestRemovedHandlerStaysSubscribed(t *testing.T) {
	t.Parallel()
	_, b := newBus(t, bus.Options{})
	write := bus.HandleTx(writeReminder)
	before, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, write, bus.HandleTx(noGreeting))
	check(t, err)
	check(t, before.Install(t.Context()))
	start(t, before)()

	after, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, write)
	check(t, err)
	start(t, after)()
	send(t, b, Greet{Email: "ann"})
	check(t, retire(t.Context(), after))
	if _, err := b.Send(t.Context(), Greet{Email: "ann"}); !errors.Is(err, bus.ErrNoRoute) {
		t.Errorf("a retired kind was sent: %v, want ErrNoRoute", err)
	}
	start(t, before)() // it is the older program, which comes back
	send(t, b, Greet{Email: "ann"})
}

// A message for a number reaches the member with this number as its key, or else the member with its address as its
// key.
func TestMembersOfBothKeysAreFound(t *testing.T) {
	t.Parallel()
	r := sagatest.New(t, Numbered)
	r.Given("ann", 1, `{"fees":3}`)
	check(t, r.Deliver(Enrol{Number: "7", Email: "bob"}))
	check(t, r.Deliver(NumberPaid{Number: "7", Email: "bob"}))
	if m := sagatest.State[Member](r, "7"); m.Fees != 1 {
		t.Errorf("bob has paid %d fees, want 1", m.Fees)
	}
	check(t, r.Deliver(NumberPaid{Number: "8", Email: "ann"}))
	for _, m := range r.Sent() {
		check(t, r.Deliver(m))
	}
	if m := sagatest.State[Member](r, "ann"); m.Fees != 4 {
		t.Errorf("ann has paid %d fees, want 4", m.Fees)
	}
}

// Programs with the two stores run at once, and no payment is lost.
func TestStoresMayMix(t *testing.T) {
	t.Parallel()
	const fees = 500
	pool, b := newBus(t, bus.Options{})
	first, err := bus.NewEndpoint(b, "members", bus.EndpointOptions{BatchMax: 5}, bus.Saga(members(saga.Pessimistic)))
	check(t, err)
	check(t, first.Install(t.Context()))
	other, err := bus.New(pool, bus.Options{})
	check(t, err)
	second, err := bus.NewEndpoint(other, "members", bus.EndpointOptions{BatchMax: 5},
		bus.Saga(members(saga.Optimistic)))
	check(t, err)
	send(t, b, Join{Email: "ann"})
	check(t, b.InTx(t.Context(), func(tx pgx.Tx) error {
		all := make([]saga.Posting, fees)
		for n := range all {
			all[n] = saga.Posting{Message: FeePaid{Email: "ann"}}
		}
		_, err := b.SendAllTx(t.Context(), tx, all)
		return err
	}))
	defer start(t, first)()
	defer start(t, second)()
	await(t, b, "ann", func(m Member) bool { return m.Fees == fees })
}

// A handler in a transaction becomes one outside of any, and both releases run at once.
func TestSortOfHandlerMayChange(t *testing.T) {
	t.Parallel()
	const letters = 300
	counted := make(chan saga.ID, 10*letters)
	pool, b := newBus(t, bus.Options{})
	first, err := bus.NewEndpoint(b, "letters", bus.EndpointOptions{BatchMax: 5},
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ Remind) error {
			counted <- ctx.Info().ID
			return nil
		}))
	check(t, err)
	check(t, first.Install(t.Context()))
	other, err := bus.New(pool, bus.Options{})
	check(t, err)
	second, err := bus.NewEndpoint(other, "letters", bus.EndpointOptions{}, bus.Handle(
		func(ctx *bus.Context, _ Remind) error {
			counted <- ctx.Info().ID
			return nil
		}))
	check(t, err)
	check(t, b.InTx(t.Context(), func(tx pgx.Tx) error {
		all := make([]saga.Posting, letters)
		for n := range all {
			all[n] = saga.Posting{Message: Remind{Email: "ann"}}
		}
		_, err := b.SendAllTx(t.Context(), tx, all)
		return err
	}))
	stopFirst, stopSecond := start(t, first), start(t, second)
	seen := map[saga.ID]bool{}
	for len(seen) < letters {
		seen[<-counted] = true
	}
	stopFirst()
	stopSecond()
	if n := leftOver(t, pool); n != 0 {
		t.Errorf("%d letters are still in the queue", n)
	}
}

// leftOver counts the messages left in all queues.
func leftOver(t *testing.T, pool *pgxpool.Pool) (left int64) {
	t.Helper()
	o, err := operate.New(pool, operate.Options{})
	check(t, err)
	all, err := o.Queues().List(t.Context())
	check(t, err)
	for _, q := range all {
		left += q.Ready + q.Delayed
	}
	return left
}

// An endpoint is renamed: the old endpoint handles the messages in its queue, the new one all later messages.
func TestEndpointGetsAnotherName(t *testing.T) {
	t.Parallel()
	handled := make(chan event.Handled, 100)
	pool, b := newBus(t, bus.Options{Events: func(e event.Event) {
		if e, ok := e.(event.Handled); ok {
			handled <- e
		}
	}})
	before, err := bus.NewEndpoint(b, "members", bus.EndpointOptions{}, bus.Saga(Members))
	check(t, err)
	check(t, before.Install(t.Context()))
	stop := start(t, before)
	send(t, b, Join{Email: "ann"})
	by(t, handled, "members")
	stop()

	old, club, err := both(b)
	check(t, err)
	check(t, club.Install(t.Context()))
	if _, err := b.Send(t.Context(), Join{Email: "eve"}); !errors.Is(err, bus.ErrAmbiguous) {
		t.Errorf("two endpoints are subscribed: %v, want ErrAmbiguous", err)
	}
	routed, err := bus.New(pool, bus.Options{Routes: []bus.Routing{bus.Route[Join]("club")}})
	check(t, err)
	send(t, routed, Join{Email: "cid"})
	check(t, switchOver(t.Context(), old, club))
	defer start(t, old, club)()
	by(t, handled, "club")
	send(t, b, Join{Email: "bob"})
	by(t, handled, "club")
	send(t, b, FeePaid{Email: "ann"}) // of an instance that the old name has begun
	by(t, handled, "club")
	fire(t, pool, "ann") // in the queue of the old name
	by(t, handled, "members")
	await(t, b, "ann", func(m Member) bool { return m.Fees == 1 && m.Reminded })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBus(t *testing.T, o bus.Options) (*pgxpool.Pool, *bus.Bus) {
	t.Helper()
	pool := eddatest.Pool(t)
	b, err := bus.New(pool, o)
	check(t, err)
	return pool, b
}

// start runs a program, which stop ends.
func start(t *testing.T, runners ...edda.Runner) (stop func()) {
	t.Helper()
	host, err := edda.NewHost(runners...)
	check(t, err)
	check(t, host.Check(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func send(t *testing.T, b *bus.Bus, m saga.Message) {
	t.Helper()
	if _, err := b.Send(t.Context(), m); err != nil {
		t.Fatal(fmt.Errorf("send %s: %w", m.Kind(), err))
	}
}

// await waits until a member is as it should be.
func await(t *testing.T, b *bus.Bus, email string, is func(Member) bool) {
	t.Helper()
	for seen, err := range b.Watch(within(t, time.Minute), Members, email, bus.WatchCursor{}) {
		check(t, err)
		var m Member
		if seen.Status != bus.InstanceLiving {
			continue
		}
		check(t, seen.Into(&m))
		if is(m) {
			return
		}
	}
	t.Fatalf("%s does not become what it should be", email)
}

// within is the context of a test for a time after which it has failed.
func within(t *testing.T, most time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	return ctx
}

// fire makes the timeout of a member due now.
func fire(t *testing.T, pool *pgxpool.Pool, email string) {
	t.Helper()
	o, err := operate.New(pool, operate.Options{})
	check(t, err)
	_, err = o.Instances().FireTimeout(t.Context(), operate.Target{Saga: "member", Key: email, Reason: "a test"}, "fee")
	check(t, err)
}

// by waits until a message was handled, and by the endpoint of that name.
func by(t *testing.T, handled <-chan event.Handled, endpoint string) {
	t.Helper()
	select {
	case e := <-handled:
		if e.Endpoint != endpoint {
			t.Errorf("%s was handled by %s, want %s", e.Info.Kind, e.Endpoint, endpoint)
		}
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
