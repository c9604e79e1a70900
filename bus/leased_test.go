package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type call struct{ N int }

func (call) Kind() string { return "outside.call" }

type called struct{ N int }

func (called) Kind() string { return "outside.called" }

// keep consumes the messages that leased handlers send.
func keep(w *world) {
	w.t.Helper()
	w.exec("CREATE TABLE edda.kept (n int); GRANT ALL ON edda.kept TO PUBLIC")
	w.start("keepers", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m called) error {
		_, err := tx.Exec(ctx, w.sql("INSERT INTO edda.kept (n) VALUES ($1)"), m.N)
		return err
	}))
}

func (w *world) sendMany(n int) {
	w.t.Helper()
	for i := range n {
		w.send(call{N: i})
	}
}

func TestLeasedHandlerSendsWithItsEnd(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	keep(w)
	w.start("callers", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m call) error {
		ctx.Send(called(m))
		return nil
	}))
	w.sendMany(300)
	w.until("300 are kept", func() bool { return w.count("SELECT count(*) FROM edda.kept") == 300 })
	w.untilEmpty("callers")
	w.want(300, "SELECT count(DISTINCT n) FROM edda.kept")
	untilTold[event.Handled](w, 300)
}

// P: while a leased handler runs, no session of its endpoint has a transaction open or waits for a lock.
func TestNoTransactionIsOpenWhileALeasedHandlerRuns(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	began, end := make(chan struct{}), make(chan struct{})
	w.start("callers", bus.EndpointOptions{Lease: 6 * time.Second}, bus.Handle(func(*bus.Context, call) error {
		close(began)
		<-end
		return nil
	}))
	w.send(call{})
	<-began
	table := w.queue("callers")
	due := func() string { return w.text("SELECT due::text FROM " + table) }
	for range 2 {
		before := due()
		w.until("the lease is extended", func() bool {
			w.want(0, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
				WHERE l.relation = '`+w.sql(table)+
				`'::regclass AND a.state = 'idle in transaction' AND a.state_change < now() - interval '3 s'`)
			return due() != before
		})
	}
	w.want(1, "SELECT count(*) FROM "+table+" WHERE owner IS NOT NULL AND due > now() AND claim = 1")
	close(end)
	w.untilEmpty("callers")
}

func TestLeaseIsExtendedWhileTheHandlerRuns(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var runs atomic.Int32
	o := bus.EndpointOptions{Lease: 3 * time.Second, Poll: 50 * time.Millisecond}
	handler := bus.Handle(func(ctx *bus.Context, _ call) error {
		runs.Add(1)
		select {
		case <-time.After(7 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	w.start("callers", o, handler)
	// a second process, which would take it when the lease ended
	other := w.newBus(bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
	e, err := bus.NewEndpoint(other, "callers", o, handler)
	if err != nil {
		t.Fatal(err)
	}
	w.run(e)
	w.send(call{})
	w.until("it was handled", func() bool { return runs.Load() > 0 })
	w.untilEmpty("callers")
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times", runs.Load())
	}
}

func TestLeasedFailuresMeetThePolicy(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var tries atomic.Int32
	policy := func(f recoverability.Failure) recoverability.Decision {
		if f.Info.Attempt < 3 {
			return recoverability.RetryIn(time.Millisecond)
		}
		return recoverability.DeadLetter()
	}
	w.start("callers", bus.EndpointOptions{Policy: policy, Poll: 20 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, m call) error {
			switch m.N {
			case 1:
				return saga.Permanent(errors.New("no such number"))
			case 2:
				panic("in a handler")
			case 3:
				return saga.Discard("nobody wants it")
			case 4:
				if tries.Add(1) < 3 {
					ctx.Send(called(m)) // of a failed attempt, and not sent
					return errors.New("busy")
				}
			}
			return nil
		}))
	keep(w)
	for n := range 5 {
		w.send(call{N: n})
	}
	w.untilEmpty("callers")
	w.want(1, "SELECT count(*) FROM edda.dead_letter WHERE reason = 'permanent' AND attempts = 3")
	w.want(1, "SELECT count(*) FROM edda.dead_letter WHERE error LIKE '%in a handler%'")
	w.want(1, "SELECT count(*) FROM edda.discarded WHERE reason = 'nobody wants it'")
	w.want(0, "SELECT count(*) FROM edda.kept")
	if tries.Load() != 3 {
		t.Errorf("the busy one was tried %d times, want 3", tries.Load())
	}
}

// A process that dies leaves its claims. Here the rows of an endpoint are claimed by an owner that never comes back.
func TestClaimOfTheDeadIsTakenAgain(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	var claims atomic.Int32
	e := w.endpoint("callers", bus.EndpointOptions{Poll: 50 * time.Millisecond},
		bus.Handle(func(*bus.Context, call) error {
			claims.Add(1)
			return nil
		}))
	w.makeQueue("callers")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.send(call{})
	table := w.queue("callers")
	w.exec("UPDATE " + table + " SET due = clock_timestamp() + interval '700 ms', claim = 1, owner = gen_random_uuid()")
	w.run(e)
	w.want(0, "SELECT count(*) FROM "+table+" WHERE due <= clock_timestamp()")
	w.untilEmpty("callers")
	if claims.Load() != 1 {
		t.Errorf("handled %d times", claims.Load())
	}
}

// A claim that a second process has taken over can be neither extended nor finished, and no message of its handler is
// written.
func TestZombieCanNotFinish(t *testing.T) {
	t.Parallel()
	for _, theft := range []struct{ name, sql string }{
		{"claimed by another", "UPDATE %s SET due = clock_timestamp() + interval '1 h', claim = claim + 1, owner = " +
			"gen_random_uuid()"},
		{"claimed again under the same owner", "UPDATE %s SET claim = claim + 1"},
		{"ended by another", "DELETE FROM %s"},
	} {
		t.Run(theft.name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			keep(w)
			began, end := make(chan struct{}), make(chan struct{})
			var cause atomic.Value
			w.start("callers", bus.EndpointOptions{Lease: time.Second},
				bus.Handle(func(ctx *bus.Context, m call) error {
					close(began)
					<-end
					ctx.Send(called(m))
					if err := context.Cause(ctx); err != nil {
						cause.Store(err)
					}
					return nil
				}))
			w.send(call{})
			<-began
			w.exec(fmt.Sprintf(theft.sql, w.queue("callers")))
			if theft.name == "claimed by another" { // the loss is detected while the handler runs, and ends its context
				w.until("the claim was lost", func() bool { return len(eventsOf[event.ClaimLost](w)) == 1 })
				close(end)
				w.until("the handler knows", func() bool { return cause.Load() != nil })
				if err, _ := cause.Load().(error); !errors.Is(err, bus.ErrClaimLost) {
					t.Errorf("the cause is %v", err)
				}
				w.want(1, "SELECT count(*) FROM "+w.queue("callers"))
				return
			}
			close(end)
			w.until("the claim was lost", func() bool { return len(eventsOf[event.ClaimLost](w)) == 1 })
			w.want(0, "SELECT count(*) FROM edda.kept")
			if handled := eventsOf[event.Handled](w); len(handled) != 0 {
				t.Errorf("reported as handled: %+v", handled)
			}
		})
	}
}

func TestConcurrencyOfLeasedHandlers(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	five := newMeeting(5)
	w.start("callers", bus.EndpointOptions{Concurrency: 5},
		bus.Handle(func(*bus.Context, call) error { five.visit(); return nil }))
	w.sendMany(100)
	w.untilEmpty("callers")
	if most := five.most.Load(); most != 5 {
		t.Errorf("%d handlers ran at a time, want 5", most)
	}
}

func TestDrainReturnsWhatHasNotBegun(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	began := make(chan struct{})
	var once sync.Once
	e := w.endpoint("callers", bus.EndpointOptions{Concurrency: 1, Drain: 50 * time.Millisecond},
		bus.Handle(func(ctx *bus.Context, _ call) error {
			once.Do(func() { close(began) })
			<-ctx.Done()
			return ctx.Err()
		}))
	w.makeQueue("callers")
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sendMany(3)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, bus.ErrDrain) {
		t.Errorf("Run returned %v, want ErrDrain", err)
	}
	w.want(3, "SELECT count(*) FROM "+w.queue("callers")+" WHERE due <= now() AND owner IS NULL AND claim IS NULL "+
		"AND attempt = 0")
}

func TestCancel(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	began := make(chan struct{})
	w.start("callers", bus.EndpointOptions{Concurrency: 1}, bus.Handle(func(ctx *bus.Context, _ call) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	runs := w.send(call{N: 1})
	<-began
	waits, later := w.send(call{N: 2}), w.send(call{N: 3}, saga.Delay(time.Hour))
	for _, c := range []struct {
		id   saga.ID
		want operate.Cancelled
	}{{waits.ID, operate.CancelledWaiting}, {later.ID, operate.CancelledWaiting}, {runs.ID, operate.CancelledRunning}} {
		if did, err := w.operator().Messages().Cancel(t.Context(), "callers", c.id, "by a test"); did != c.want ||
			err != nil {
			t.Errorf("cancel: %v %v, want %v", did, err, c.want)
		}
	}
	w.untilEmpty("callers")
	w.want(3, "SELECT count(*) FROM edda.discarded WHERE reason = 'cancelled: by a test'")
	if _, err := w.operator().Messages().Cancel(t.Context(), "callers", runs.ID, "again"); !errors.Is(err,
		operate.ErrNotFound) {
		t.Errorf("a second cancel: %v, want ErrNotFound", err)
	}
	if _, err := w.operator().Messages().Cancel(t.Context(), "nobody", runs.ID, ""); !errors.Is(err,
		bus.ErrNotInstalled) {
		t.Errorf("cancel in an endpoint that is not there: %v", err)
	}
}

func TestModesDoNotMix(t *testing.T) {
	w := newWorld(t, bus.Options{})
	outside := bus.Handle(func(*bus.Context, call) error { return nil })
	inside := bus.HandleTx(func(*bus.Context, pgx.Tx, called) error { return nil })
	for name, parts := range map[string][]bus.Part{
		"HandleTx": {outside, inside}, "Saga": {outside, bus.Saga(tallies(saga.Pessimistic, nil))},
		"HandleRaw": {outside, bus.HandleRaw(func(*bus.Context, *saga.Delivery) error { return nil })},
	} {
		_, err := bus.NewEndpoint(w.bus, "mixed", bus.EndpointOptions{}, parts...)
		if err == nil {
			t.Errorf("Handle with %s was accepted", name)
		}
	}
}
