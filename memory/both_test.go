package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/go-cmp/cmp"
)

// inBoth runs a test in memory and on Postgres.
func inBoth(t *testing.T, test func(t *testing.T, s *scene)) {
	t.Helper()
	t.Parallel()
	for at, open := range map[string]func(*testing.T, bus.Options) place{
		"memory": openMemory, "postgres": openPostgres,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			test(t, newScene(t, open, bus.Options{}))
		})
	}
}

// run runs everything until stop, which returns the errors.
func (s *scene) run() (stop func() error) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	for _, r := range s.runners {
		if e, ok := r.(interface{ Check(context.Context) error }); ok {
			if err := e.Check(ctx); err != nil {
				s.Fatal(err)
			}
		}
	}
	ended := make(chan error, len(s.runners))
	for _, r := range s.runners {
		go func() { ended <- r.Run(ctx) }()
	}
	return func() (err error) {
		cancel()
		for range s.runners {
			err = errors.Join(err, <-ended)
		}
		return err
	}
}

// stopped calls stop at the end of the test.
func (s *scene) stopped(stop func() error) {
	s.Cleanup(func() {
		if err := stop(); err != nil {
			s.Error(err)
		}
	})
}

func (s *scene) trigger(manifest string, o scheduler.TriggerOptions) (id saga.ID) {
	s.Helper()
	s.await("manifest "+manifest, func() (there bool) { // Run declares it at its beginning
		var err error
		id, err = s.runs.Trigger(s.Context(), manifest, nil, o)
		if err != nil && !errors.Is(err, scheduler.ErrNoManifest) {
			s.Fatal(err)
		}
		return err == nil
	})
	return id
}

func (s *scene) runOf(id saga.ID) scheduler.RunInfo {
	s.Helper()
	info, err := s.runs.RunOf(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return info
}

// end ends a run whose work continued elsewhere.
func (s *scene) end(id saga.ID, attempt int, failure error) error {
	if m, ok := s.runs.(*memory.Scheduler); ok {
		return m.End(s.Context(), id, attempt, failure)
	}
	p, ok := s.place.(*onPostgres)
	if !ok {
		s.Fatal("no place")
	}
	r, err := scheduler.NewReports(pgtest.Pool(s.T), p.schema)
	if err != nil {
		return err
	}
	return r.End(s.Context(), id, attempt, failure)
}

// If a drain cancels a handler, its message keeps its place and its attempts, however the handler ends.
func TestDrainKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]bus.Ordering{"of a key": bus.Strict, "of the queue": bus.Unordered} {
		t.Run(name, func(t *testing.T) { testDrainKeepsTheOrder(t, order, func(err error) error { return err }) })
	}
	t.Run("after an exit", func(t *testing.T) {
		testDrainKeepsTheOrder(t, bus.Strict, func(error) error { runtime.Goexit(); return nil })
	})
}

func testDrainKeepsTheOrder(t *testing.T, order bus.Ordering, end func(error) error) {
	inBoth(t, func(t *testing.T, s *scene) {
		var mu sync.Mutex
		var got []string
		begun := make(chan struct{})
		o := bus.EndpointOptions{Ordered: order, Drain: 20 * time.Millisecond}
		key := []bus.HandleOption[note]{bus.KeyedBy(func(m note) string { return m.Order })}
		if order == bus.Unordered {
			o.Concurrency, key = 1, nil
		}
		s.on("notes", o, bus.Handle(
			func(ctx *bus.Context, m note) error {
				mu.Lock()
				got = append(got, m.Text)
				first := len(got) == 1
				mu.Unlock()
				if ctx.Info().Attempt != 1 {
					t.Errorf("attempt %d of %s", ctx.Info().Attempt, m.Text)
				}
				if first {
					close(begun)
					<-ctx.Done()
					return end(context.Cause(ctx))
				}
				return nil
			}, key...))
		stop := s.run()
		s.send(note{"7", "A"})
		<-begun
		s.send(note{"7", "B"})
		s.send(note{"7", "C"})
		if order != bus.Unordered {
			s.await("those behind it", func() bool { return !s.isReady() })
		}
		if err := stop(); !errors.Is(err, bus.ErrDrain) {
			t.Errorf("Run returned %v, want ErrDrain", err)
		}
		stop = s.run()
		s.await("the end", func() bool { n, err := s.waiting(t.Context()); return err == nil && n == 0 })
		if err := stop(); err != nil && !errors.Is(err, bus.ErrDrain) { // because Drain is short
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := "A A B C"; strings.Join(got, " ") != want {
			t.Errorf("handled %v, want %s", got, want)
		}
	})
}

// A state of a newer program waits for that program, which costs no attempt; an unreadable state is a failure.
func TestStatesOfOtherPrograms(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		starts := func(*order, *saga.Context, place7) error { return nil }
		handles := func(*order, *saga.Context, note) error { return nil }
		keyed := func(m note) string { return m.Order }
		s.on("newer", bus.EndpointOptions{}, bus.Saga(saga.Define("order", saga.Options{StateVersion: 2},
			saga.Upcast(1, func(o order) (order, error) { return o, nil }),
			saga.StartedBy(byOrder, func(o *order, _ *saga.Context, _ place7) error { o.Paid = true; return nil }))))
		direct := bus.EndpointOptions{DirectOnly: true, Policy: recoverability.Always(recoverability.DeadLetter())}
		s.on("older", direct, bus.Saga(saga.Define("order", saga.Options{},
			saga.StartedBy(byOrder, starts), saga.Handles(keyed, handles))))
		s.on("other", direct, bus.Saga(saga.Define("order", saga.Options{StateVersion: 2},
			saga.Upcast(1, func(struct{}) (struct{ Paid string }, error) { return struct{ Paid string }{}, nil }),
			saga.StartedBy(byOrder, func(*struct{ Paid string }, *saga.Context, place7) error { return nil }),
			saga.Handles(keyed, func(*struct{ Paid string }, *saga.Context, note) error { return nil }))))
		s.stopped(s.run())
		s.send(place7{"7"})
		s.await("the start", func() bool { return s.has("newer: handled place by order/7") })
		s.send(note{"7", ""}, saga.To("other"))
		s.await("the letter", func() bool { return len(s.lettersOf()) == 1 })
		s.send(note{"7", ""}, saga.To("older"))
		s.await("its wait", func() bool { return s.says("older: retried note after 1 in ") })
		all := s.lettersOf()
		if len(all) != 1 || all[0].Endpoint != "other" || !strings.Contains(all[0].Error, "Paid") {
			t.Errorf("%+v", all)
		}
	})
}

// isReady reports whether a message is ready that no worker has taken.
func (s *scene) isReady() bool {
	if m, ok := s.place.(inMemory); ok {
		for _, q := range m.Queues() {
			if q.Ready > 0 {
				return true
			}
		}
		return false
	}
	p, ok := s.place.(*onPostgres)
	if !ok {
		s.Fatal("no place")
	}
	queues, err := p.operator.Queues().List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, q := range queues {
		if q.Ready > 0 {
			return true
		}
	}
	return false
}

// A paused endpoint does not block the instances of its saga for other endpoints.
func TestPausedEndpointHoldsNoInstance(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		begun, finish := make(chan struct{}), make(chan struct{})
		d := func() *saga.Definition {
			return saga.Define("order", saga.Options{},
				saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error {
					close(begun)
					<-finish
					return nil
				}),
				saga.Handles(func(m note) string { return m.Order },
					func(*order, *saga.Context, note) error { return nil }))
		}
		s.on("a", bus.EndpointOptions{Concurrency: 2}, bus.Saga(d()))
		s.on("b", bus.EndpointOptions{Concurrency: 2, DirectOnly: true}, bus.Saga(d()))
		s.stopped(s.run())
		s.send(place7{"7"}, saga.To("a"))
		<-begun
		s.send(note{"7", "for a"}, saga.To("a"))
		if _, ok := s.place.(inMemory); ok { // a batch on Postgres has no separate row for a waiting message
			s.await("the note behind it", func() bool { return !s.isReady() })
		}
		if err := s.pause(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		s.await("the pause", func() bool { return s.has("a: paused: a test") })
		close(finish)
		s.await("the start", func() bool { return s.has("a: handled place by order/7") })
		s.send(note{"7", "for b"}, saga.To("b"))
		s.await("the other endpoint", func() bool { return s.has("b: handled note by order/7") })
	})
}

// A release whose handlers fail leaves each state as the previous release has stored it and can read it.
func TestFailingReleaseStoresNoState(t *testing.T) {
	for name, store := range map[string]saga.Store{"pessimistic": saga.Pessimistic, "optimistic": saga.Optimistic} {
		t.Run(name, func(t *testing.T) {
			inBoth(t, func(t *testing.T, s *scene) {
				byNote := func(m note) string { return m.Order }
				before := saga.Define("order", saga.Options{Store: store},
					saga.StartedBy(byOrder, func(o *order, _ *saga.Context, _ place7) error {
						o.Paid = true
						return nil
					}),
					saga.Handles(byNote, func(*order, *saga.Context, note) error { return nil }))
				type newer struct{ Money int }
				after := saga.Define("order", saga.Options{Store: store, StateVersion: 2},
					saga.StartedBy(byOrder, func(*newer, *saga.Context, place7) error { return nil }),
					saga.Handles(byNote, func(_ *newer, _ *saga.Context, m note) error {
						if m.Text == "late" {
							return saga.Discard(m.Text)
						}
						return saga.Permanent(errors.New(m.Text))
					}),
					saga.Upcast(1, func(order) (newer, error) { return newer{7}, nil }))
				s.on("before", bus.EndpointOptions{}, bus.Saga(before))
				s.on("after", bus.EndpointOptions{DirectOnly: true}, bus.Saga(after))
				s.stopped(s.run())
				s.send(place7{"7"})
				s.await("the start", func() bool { return s.has("before: handled place by order/7") })
				for _, text := range []string{"late", "broken"} {
					s.send(note{"7", text}, saga.To("after"))
				}
				s.await("a failure", func() bool { return s.has("after: dead note after 1, permanent: broken") })
				s.await("a discard", func() bool { return s.has("after: discarded note: late") })
				i, ok, err := s.Instance(t.Context(), before, "7", nil)
				if want := `{"Notes":null,"Paid":true}`; !ok || err != nil || i.Version != 1 || i.StateVersion != 1 ||
					string(i.State) != want {
					t.Errorf("version %d, state %s of version %d, %v; want it as it began", i.Version, i.State,
						i.StateVersion, err)
				}
			})
		})
	}
}

// A field that was renamed without a new version is logged, once for all instances that lose it.
func TestStateThatLosesAFieldIsLogged(t *testing.T) {
	t.Parallel()
	for at, open := range map[string]func(*testing.T, bus.Options) place{
		"memory": openMemory, "postgres": openPostgres,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s, log := &scene{T: t, teller: &teller{}}, &lines{}
			s.place = open(t, bus.Options{Logger: slog.New(slog.NewTextHandler(log, nil)), Events: s.hear})
			type renamed struct{ Remarks []string }
			byNote := func(m note) string { return m.Order }
			s.on("before", bus.EndpointOptions{}, bus.Saga(saga.Define("order", saga.Options{},
				saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error { return nil }))))
			s.on("after", bus.EndpointOptions{DirectOnly: true}, bus.Saga(saga.Define("order", saga.Options{},
				saga.StartedBy(byNote, func(*renamed, *saga.Context, note) error { return nil }))))
			s.stopped(s.run())
			for _, key := range []string{"7", "8"} {
				s.send(place7{key})
				s.await("a start", func() bool { return s.has("before: handled place by order/" + key) })
				s.send(note{key, "x"}, saga.To("after"))
				s.await("a note", func() bool { return s.has("after: handled note by order/" + key) })
			}
			for _, field := range []string{"Notes", "Paid"} {
				want := `saga=order key=7 field=` + field + ` state_version=1 remedy="if the field was renamed`
				if n := strings.Count(log.text(), "and loses it"); n != 2 || !strings.Contains(log.text(), want) {
					t.Errorf("%d warnings, want 2, of which one has %s:\n%s", n, want, log.text())
				}
			}
		})
	}
}

// A reply finds no instance of a saga that did not send the request.
func TestReplyIsForTheSagaThatHasAsked(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		asks := saga.Define("asks", saga.Options{}, saga.StartedBy(byOrder,
			func(o *order, ctx *saga.Context, _ place7) error { ctx.Send(question{"x"}); return nil }))
		answered := saga.Define("answered", saga.Options{},
			saga.StartedBy(func(m note) string { return m.Order },
				func(*order, *saga.Context, note) error { return nil }),
			saga.OnReply(func(o *order, _ *saga.Context, _ answer) error { o.Paid = true; return nil }))
		s.show, s.keys = []*saga.Definition{asks, answered}, []string{"7"}
		s.on("orders", bus.EndpointOptions{}, bus.Saga(asks), bus.Saga(answered))
		s.on("questions", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ question) error {
			ctx.Reply(answer{"x"})
			return nil
		}))
		got := s.play(func() { s.send(place7{"7"}) })
		want := `answered/7 is not there
asks/7 is version 1, {"Notes":null,"Paid":false}, and waits for 0 timeouts
orders: discarded answer: no instance
orders: handled place by asks/7
questions: handled question`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// lines is a log. It is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// priced has a field that the JSON codec does not carry.
type priced struct {
	Order string
	price int
}

func (priced) Kind() string { return "priced" }

// A type that loses a field when it is encoded is refused with each part that names it, unless the program has its own
// codec that carries the field.
func TestMessageThatLosesAFieldIsRefusedInBoth(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		byOrder := func(m priced) string { return m.Order + fmt.Sprint(m.price) }
		nop := func(*order, *saga.Context, priced) error { return nil }
		for name, parts := range map[string][]bus.Part{
			"Handle": {bus.Handle(func(*bus.Context, priced) error { return nil })},
			"Saga": {bus.Saga(saga.Define("order", saga.Options{}, saga.StartedBy(byOrder, nop),
				saga.OnTimeout(nop)))},
			"Accept": {bus.Accept(func(priced) (note, error) { return note{}, nil }),
				bus.Handle(func(*bus.Context, note) error { return nil })},
		} {
			_, err := s.endpoint("prices", bus.EndpointOptions{}, parts...)
			if want := "memory_test.priced: field price is unexported, so it is not sent: export it"; err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	})
	own := struct{ saga.Codec }{saga.JSON}
	b, err := memory.New(memory.Options{Codec: own})
	if err == nil {
		_, err = memory.NewEndpoint(b, "prices", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, priced) error {
			return nil
		}))
	}
	if err != nil {
		t.Error(err)
	}
}

// If a key function ends its goroutine, its message fails.
func TestKeyThatExitsInBoth(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		s.on("notes", bus.EndpointOptions{Ordered: bus.Overtaking, Concurrency: 1}, bus.Handle(
			func(*bus.Context, note) error { return nil }, bus.KeyedBy(func(m note) string {
				if m.Text == "exit" {
					runtime.Goexit()
				}
				return m.Order
			})))
		got := s.play(func() {
			s.send(note{"7", "exit"})
			s.send(note{"7", "stay"})
		})
		want := "notes: dead note after 1, permanent: decoding it: it ended its goroutine (runtime.Goexit, " +
			"or FailNow of package testing)\nnotes: handled note"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// exiting is an error whose text ends the goroutine that reads it.
type exiting struct{}

func (exiting) Error() string {
	runtime.Goexit()
	return ""
}

// If the text of an error, or a policy, ends the goroutine of the only worker, only its message fails.
func TestFailuresThatExitInBoth(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		policy := func(f recoverability.Failure) recoverability.Decision {
			if f.Err.Error() == "policy" {
				runtime.Goexit()
			}
			return recoverability.DeadLetter()
		}
		s.on("notes", bus.EndpointOptions{Policy: policy, Concurrency: 1}, bus.Handle(
			func(_ *bus.Context, m note) error {
				switch m.Text {
				case "text":
					return exiting{}
				case "policy":
					return errors.New("policy")
				}
				return nil
			}))
		got := s.play(func() {
			s.send(note{"7", "text"})
			s.send(note{"7", "policy"})
			s.send(note{"7", "stay"})
		})
		want := "notes: dead note after 1, given up by the policy: the handler ended its goroutine (runtime.Goexit, " +
			"or FailNow of package testing)\n" +
			"notes: dead note after 1, the policy failed: policy\nnotes: handled note"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// If Options.Events ends its goroutine, no worker ends.
func TestEventsThatExitInBoth(t *testing.T) {
	t.Parallel()
	for at, open := range map[string]func(*testing.T, bus.Options) place{
		"memory": openMemory, "postgres": openPostgres,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := &scene{T: t, teller: &teller{}}
			exited := false // the only worker sets it
			s.place = open(t, bus.Options{Logger: slog.New(slog.DiscardHandler), Events: func(e event.Event) {
				if _, ok := e.(event.Handled); ok && !exited {
					exited = true
					runtime.Goexit()
				}
				s.hear(e)
			}})
			s.on("notes", bus.EndpointOptions{Concurrency: 1}, bus.Saga(saga.Define("order", saga.Options{},
				saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error { return nil }))))
			s.stopped(s.run())
			s.send(place7{"1"})
			s.await("the first", func() bool { n, err := s.waiting(t.Context()); return err == nil && n == 0 })
			s.send(place7{"2"})
			s.await("the second", func() bool { return s.has("notes: handled place by order/2") })
		})
	}
}

// Operators and other programs change runs in the same way on both buses.
func TestRunsAreChangedAlike(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		s.manifests(
			scheduler.Manifest{Name: "left", When: scheduler.OnDemand(), Message: note{"1", "left"}},
			scheduler.Manifest{Name: "plain", When: scheduler.OnDemand(), Message: question{"x"}, Priority: 2},
			scheduler.Manifest{Name: "dormant", When: scheduler.Dormant("left"), Message: answer{"x"}})
		fires := make(chan saga.Firing, 10)
		s.on("notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ note) error {
			ctx.LeaveRun()
			fires <- *ctx.Info().Firing
			return nil
		}), bus.Handle(func(ctx *bus.Context, _ answer) error { ctx.LeaveRun(); return nil }),
			bus.Handle(func(ctx *bus.Context, _ question) error { fires <- *ctx.Info().Firing; return nil }))
		s.stopped(s.run())
		left := s.trigger("left", scheduler.TriggerOptions{Priority: 7})
		fire := <-fires
		info := s.runOf(left)
		s.say("priority %d, message %v, queued %v", info.Priority, !info.Message.IsZero(), !info.Queued.IsZero())
		over := fire
		over.Attempt = 9
		_, _, err := s.runs.Activate(t.Context(), over, "dormant", nil)
		s.say("activate of an attempt that is over: not current %v", errors.Is(err, scheduler.ErrNotCurrent))
		first, fresh, err := s.runs.Activate(t.Context(), fire, "dormant", nil)
		s.say("activate: %v %v", fresh, err)
		s.say("cancel: %v, again %v", s.runs.Cancel(t.Context(), first, "a note"),
			s.runs.Cancel(t.Context(), first, "a note"))
		info = s.runOf(first)
		s.say("cancelled: note %q, ended %v", info.Note, !info.Ended.IsZero())
		if _, _, err := s.runs.Activate(t.Context(), fire, "dormant", nil); err != nil {
			t.Fatal(err)
		}
		s.say("retry beside another: taken %v", errors.Is(s.runs.Retry(t.Context(), first, ""), scheduler.ErrTaken))
		err = s.runs.Retry(t.Context(), left, "")
		s.say("retry of an active run: ended %v, refused %v", errors.Is(err, scheduler.ErrEnded), err != nil)
		s.say("end: %v, again %v", s.end(left, 1, nil), s.end(left, 1, nil))
		s.say("another end: not current %v", errors.Is(s.end(left, 1, errors.New("no")), scheduler.ErrNotCurrent))
		left = s.trigger("left", scheduler.TriggerOptions{})
		<-fires
		s.say("end for good: %v, %s", s.end(left, 1, saga.Permanent(errors.New("no"))), s.runOf(left).State)
		begun := time.Now().Truncate(time.Microsecond) // the precision of due times
		s.trigger("plain", scheduler.TriggerOptions{Delay: time.Second})
		s.say("due with its delay: %v", !(<-fires).Due.Before(begun.Add(time.Second)))
		_, err = s.runs.Trigger(t.Context(), "plain", nil, scheduler.TriggerOptions{Priority: 99})
		s.say("priority 99: refused %v", err != nil)
		want := `priority 7, message true, queued true
activate of an attempt that is over: not current true
activate: true <nil>
cancel: <nil>, again <nil>
cancelled: note "a note", ended true
retry beside another: taken true
retry of an active run: ended false, refused true
end: <nil>, again <nil>
another end: not current true
end for good: <nil>, dead
due with its delay: true
priority 99: refused true`
		s.mu.Lock()
		defer s.mu.Unlock()
		var got []string
		for _, line := range s.lines {
			if !strings.HasPrefix(line, "notes: ") {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), got); diff != "" {
			t.Error(diff)
		}
	})
}

// A handler whose run is over is cancelled, and its result does not affect the message.
func TestHandlerOfARunThatIsOverIsCancelled(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		s.manifests(scheduler.Manifest{Name: "m", When: scheduler.OnDemand(), Message: note{"1", ""}})
		begun, cause := make(chan struct{}), make(chan error, 1)
		o := bus.EndpointOptions{Lease: time.Second, Drain: time.Second}
		s.on("notes", o, bus.Handle(func(ctx *bus.Context, _ note) error {
			close(begun)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return errors.New("it was interrupted")
		}))
		s.stopped(s.run())
		id := s.trigger("m", scheduler.TriggerOptions{})
		<-begun
		if err := s.runs.Cancel(t.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-cause:
			if !errors.Is(err, bus.ErrCancelled) {
				t.Errorf("the handler was cancelled by %v", err)
			}
		case <-time.After(pgdev.Patience(20 * time.Second)):
			t.Fatal("the handler was not cancelled")
		}
		s.await("its end", func() bool { return s.has("notes: discarded note: its run is over") })
	})
}

// A policy gets the number of messages handled since Run began, discarded ones included.
func TestPolicyIsToldWhatWasHandled(t *testing.T) {
	inBoth(t, func(t *testing.T, s *scene) {
		told := make(chan int64, 2)
		policy := func(f recoverability.Failure) recoverability.Decision {
			told <- f.Handled
			return recoverability.DeadLetter()
		}
		handle := func(_ *bus.Context, m note) error {
			switch m.Text {
			case "bad":
				return errors.New("bad")
			case "unwanted":
				return saga.Discard("unwanted")
			}
			return nil
		}
		s.on("notes", bus.EndpointOptions{Concurrency: 1, Policy: policy}, bus.Handle(handle))
		for range 2 {
			stop := s.run()
			for _, text := range []string{"good", "unwanted", "bad"} {
				s.send(note{"1", text})
				s.await(text, func() bool { n, err := s.waiting(t.Context()); return err == nil && n == 0 })
				s.await("its event", s.heard)
			}
			if got := <-told; got != 2 {
				t.Errorf("the policy was told of %d, want 2", got)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// heard reports whether a line was added since the last call.
func (s *scene) heard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := len(s.lines) > 0
	s.lines = nil
	return some
}
