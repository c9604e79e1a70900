package memory_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/google/go-cmp/cmp"
)

// The messages of the stories. Each story gives the kinds its own meaning.
type (
	place7   struct{ Order string }
	charge   struct{ Order string }
	charged  struct{ Order string }
	overdue  struct{ Why string }
	closed   struct{ Order, How string }
	note     struct{ Order, Text string }
	oldNote  struct{ Words string }
	question struct{ Of string }
	answer   struct{ To string }
)

func (place7) Kind() string   { return "place" }
func (charge) Kind() string   { return "charge" }
func (charged) Kind() string  { return "charged" }
func (overdue) Kind() string  { return "overdue" }
func (closed) Kind() string   { return "closed" }
func (note) Kind() string     { return "note" }
func (oldNote) Kind() string  { return "note.old" }
func (question) Kind() string { return "question" }
func (answer) Kind() string   { return "answer" }

// order is the state of the saga of most stories.
type order struct {
	Notes []string
	Paid  bool
}

func byOrder(m place7) string { return m.Order }

// shop is a saga that requests money and waits for it.
func shop(payWithin time.Duration, o saga.Options) *saga.Definition {
	return saga.Define("order", o,
		saga.StartedBy(byOrder, func(_ *order, ctx *saga.Context, m place7) error {
			ctx.Send(charge(m))
			ctx.Timeout(payWithin, overdue{"no money"}, saga.Named("payment"))
			return nil
		}),
		saga.OnReply(func(s *order, ctx *saga.Context, m charged) error {
			s.Paid = true
			ctx.CancelTimeout("payment")
			ctx.Publish(closed{m.Order, "paid"})
			ctx.Complete()
			return nil
		}),
		saga.Handles(func(m note) string { return m.Order }, func(s *order, _ *saga.Context, m note) error {
			s.Notes = append(s.Notes, m.Text)
			if strings.HasPrefix(m.Text, "bad") {
				return saga.Permanent(errors.New(m.Text))
			}
			return nil
		}),
		saga.OnTimeout(func(_ *order, ctx *saga.Context, m overdue) error {
			ctx.Publish(closed{ctx.Key(), m.Why})
			ctx.Complete()
			return nil
		}),
	)
}

// twice retries twice, the second time after a delay.
func twice(f recoverability.Failure) recoverability.Decision {
	var permanent *saga.PermanentError
	switch {
	case errors.As(f.Err, &permanent), f.Info.Attempt > 2:
		return recoverability.DeadLetter()
	case f.Info.Attempt == 2:
		return recoverability.RetryIn(30 * time.Millisecond)
	}
	return recoverability.RetryNow()
}

// story has the same lines in memory and on Postgres.
type story struct {
	name    string
	options bus.Options
	cast    func(s *scene) // adds the endpoints and the manifests
	plot    func(s *scene)
	want    string // the lines, sorted
}

func TestMemoryTellsTheStoriesOfPostgres(t *testing.T) {
	t.Parallel()
	for _, one := range stories {
		for at, open := range map[string]func(*testing.T, bus.Options) place{
			"memory": openMemory, "postgres": openPostgres,
		} {
			t.Run(one.name+"/"+at, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, open, one.options)
				one.cast(s)
				got := s.play(func() { one.plot(s) })
				want := strings.ReplaceAll(strings.TrimSpace(one.want), "\n\t\t", "\n")
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Errorf("told otherwise than wanted (-), namely (+):\n%s", diff)
				}
			})
		}
	}
}

// payment answers each charge.
func payment(s *scene) bus.Part {
	return bus.Handle(func(ctx *bus.Context, m charge) error {
		s.say("charge %s from %s, answered to an instance: %v", m.Order, ctx.Info().From, !ctx.Info().Origin.IsZero())
		ctx.Reply(charged(m))
		return nil
	})
}

func accounts(s *scene) bus.Part {
	return bus.Handle(func(_ *bus.Context, m closed) error {
		s.say("order %s is closed: %s", m.Order, m.How)
		return nil
	})
}

var stories = []story{
	{name: "an order is paid",
		cast: func(s *scene) {
			d := shop(time.Hour, saga.Options{})
			s.show, s.keys = []*saga.Definition{d}, []string{"7"}
			s.on("orders", bus.EndpointOptions{}, bus.Saga(d))
			s.on("payment", bus.EndpointOptions{}, payment(s))
			s.on("accounts", bus.EndpointOptions{}, accounts(s))
			s.on("audit", bus.EndpointOptions{}, bus.HandleRaw(func(_ *bus.Context, d *saga.Delivery) error {
				s.say("seen %s %s of %s", d.Info.Kind, d.Body, d.Info.From)
				return nil
			}, "closed"))
		},
		plot: func(s *scene) { s.send(place7{"7"}) },
		want: `
		accounts: handled closed
		audit: handled closed
		charge 7 from orders, answered to an instance: true
		order 7 is closed: paid
		order/7 is not there
		orders: handled charged by order/7
		orders: handled place by order/7
		payment: handled charge
		seen closed {"Order":"7","How":"paid"} of orders`},
	{name: "an order is not paid in time",
		cast: func(s *scene) {
			s.on("orders", bus.EndpointOptions{}, bus.Saga(shop(50*time.Millisecond, saga.Options{})))
			s.on("payment", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, charge) error { return nil }))
			s.on("accounts", bus.EndpointOptions{}, accounts(s))
		},
		plot: func(s *scene) { s.publish(place7{"7"}) },
		want: `
		accounts: handled closed
		order 7 is closed: no money
		orders: handled overdue by order/7
		orders: handled place by order/7
		payment: handled charge`},
	{name: "a step that fails has changed nothing",
		cast: func(s *scene) {
			d := shop(time.Hour, saga.Options{Store: saga.Optimistic})
			s.show, s.keys, s.left = []*saga.Definition{d}, []string{"7"}, 1
			s.on("orders", bus.EndpointOptions{Policy: twice}, bus.Saga(d))
			s.on("payment", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, charge) error { return nil }))
		},
		plot: func(s *scene) {
			s.send(place7{"7"})
			s.await("the start", func() bool { return s.has("orders: handled place by order/7") })
			s.send(note{"7", "good"})
			s.await("the note", func() bool { return s.has("orders: handled note by order/7") })
			s.send(note{"7", "bad"})
		},
		want: `
		order/7 is version 2, {"Notes":["good"],"Paid":false}, and waits for 1 timeouts
		orders: dead note after 1, permanent: bad
		orders: handled note by order/7
		orders: handled place by order/7
		payment: handled charge`},
	{name: "attempts are counted, and the policy decides",
		cast: func(s *scene) {
			s.on("notes", bus.EndpointOptions{Policy: twice}, bus.Handle(func(ctx *bus.Context, m note) error {
				switch {
				case m.Text == "panics":
					panic("out of paper")
				case m.Text == "late" && ctx.Info().Attempt == 3:
					return nil
				case m.Text == "unwanted":
					return saga.Discard("nobody reads it")
				}
				ctx.Publish(closed{m.Order, "sent by an attempt that failed"})
				return errors.New("no paper")
			}))
			s.on("accounts", bus.EndpointOptions{}, accounts(s))
		},
		plot: func(s *scene) {
			s.send(note{"1", "late"})
			s.send(note{"2", "never"})
			s.send(note{"3", "unwanted"})
			s.send(note{"4", "panics"})
		},
		want: `
		notes: dead note after 3, given up by the policy: no paper
		notes: dead note after 3, given up by the policy: panic: out of paper
		notes: discarded note: nobody reads it
		notes: handled note
		notes: retried note after 1 in 0s: no paper
		notes: retried note after 1 in 0s: no paper
		notes: retried note after 1 in 0s: panic: out of paper
		notes: retried note after 2 in 30ms: no paper
		notes: retried note after 2 in 30ms: no paper
		notes: retried note after 2 in 30ms: panic: out of paper`},
	{name: "what cannot be read",
		cast: func(s *scene) {
			s.on("notes", bus.EndpointOptions{UnknownKindTimeout: 50 * time.Millisecond},
				bus.Handle(func(_ *bus.Context, m note) error { s.say("note %s", m.Text); return nil }),
				bus.Accept(func(m oldNote) (note, error) {
					if m.Words == "" {
						return note{}, errors.New("there are no words")
					}
					return note{Text: "once " + m.Words}, nil
				}))
			s.on("orders", bus.EndpointOptions{}, bus.Saga(shop(time.Hour, saga.Options{})))
		},
		plot: func(s *scene) {
			s.send(oldNote{"upon a time"})
			s.send(oldNote{})
			s.send(saga.Raw{Name: "note", Body: []byte("{")}, saga.To("notes"))
			s.send(saga.Raw{Name: "riddle", Body: []byte("{}")}, saga.To("notes"))
			s.send(saga.Raw{Name: "place", Body: []byte(`{"Order":""}`)})
			s.send(note{Text: "late"}, saga.To("notes"), saga.Expire(time.Microsecond))
		},
		want: `
		note once upon a time
		notes: dead note after 1, permanent: decode note: unexpected end of JSON input
		notes: dead note.old after 1, permanent: accept note.old as note: there are no words
		notes: dead riddle after 0, unknown kind: riddle: no program that consumes this queue handles its kind; ` +
			`this endpoint consumes [note note.old]
		notes: discarded note: expired
		notes: handled note
		notes: retried riddle after 1 in 50ms: riddle: no program that consumes this queue handles its kind; ` +
			`this endpoint consumes [note note.old]
		orders: dead place after 1, permanent: key of place for saga order: it is empty`},
	{name: "messages without an instance",
		cast: func(s *scene) {
			handles := func(o ...saga.HandleOption) bus.Part {
				return bus.Saga(saga.Define("order", saga.Options{},
					saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error { return nil }),
					saga.Handles(func(m note) string { return m.Order },
						func(*order, *saga.Context, note) error { return nil }, o...)))
			}
			s.on("discards", bus.EndpointOptions{}, handles())
			s.on("buries", bus.EndpointOptions{}, handles(saga.IfMissing(saga.MissingDeadLetter)))
			s.on("does", bus.EndpointOptions{}, handles(saga.IfMissingDo(
				func(ctx *saga.Context, m note) error {
					s.say("there is no order %s", m.Order)
					ctx.Publish(closed{m.Order, "never opened"})
					return nil
				})))
			s.on("accounts", bus.EndpointOptions{}, accounts(s))
		},
		plot: func(s *scene) { s.publish(note{"7", "hello"}) },
		want: `
		accounts: handled closed
		buries: dead note after 0, no instance: saga order, key "7": no instance: the message found no saga instance
		buries: retried note after 1 in 1s: the message found no saga instance
		buries: retried note after 1 in 1s: the message found no saga instance
		buries: retried note after 1 in 1s: the message found no saga instance
		discards: discarded note: no instance
		discards: retried note after 1 in 1s: the message found no saga instance
		discards: retried note after 1 in 1s: the message found no saga instance
		discards: retried note after 1 in 1s: the message found no saga instance
		does: handled note by order/7
		does: retried note after 1 in 1s: the message found no saga instance
		does: retried note after 1 in 1s: the message found no saga instance
		does: retried note after 1 in 1s: the message found no saga instance
		order 7 is closed: never opened
		there is no order 7`},
	{name: "a completed order is remembered",
		cast: func(s *scene) {
			d := shop(time.Hour, saga.Options{Remember: time.Hour})
			s.show, s.keys, s.left = []*saga.Definition{d}, []string{"7"}, 1
			s.on("orders", bus.EndpointOptions{}, bus.Saga(d))
			s.on("payment", bus.EndpointOptions{}, payment(s))
		},
		plot: func(s *scene) {
			s.send(place7{"7"})
			s.await("the end", func() bool { return s.has("orders: handled charged by order/7") })
			s.send(place7{"7"})
			s.send(note{"7", "too late"})
		},
		want: `
		charge 7 from orders, answered to an instance: true
		order/7 is not there
		orders: discarded note: instance has completed
		orders: discarded place: instance has completed
		orders: handled charged by order/7
		orders: handled place by order/7
		payment: handled charge`},
	{name: "sends that are refused",
		options: bus.Options{Routes: []bus.Routing{bus.Route[question]("first")}},
		cast: func(s *scene) {
			nothing := func(*bus.Context, charge) error { return nil }
			s.on("first", bus.EndpointOptions{}, bus.Handle(nothing),
				bus.Handle(func(*bus.Context, question) error { s.say("routed"); return nil }))
			s.on("second", bus.EndpointOptions{}, bus.Handle(nothing),
				bus.Handle(func(*bus.Context, question) error { return nil }))
		},
		plot: func(s *scene) {
			for what, f := range map[string]func() (saga.Sent, error){
				"unknown":    func() (saga.Sent, error) { return s.Send(s.Context(), place7{}) },
				"ambiguous":  func() (saga.Sent, error) { return s.Send(s.Context(), charge{}) },
				"elsewhere":  func() (saga.Sent, error) { return s.Send(s.Context(), charge{}, saga.To("third")) },
				"event":      func() (saga.Sent, error) { return s.Publish(s.Context(), place7{}) },
				"must route": func() (saga.Sent, error) { return s.Publish(s.Context(), place7{}, saga.MustRoute()) },
				"no kind":    func() (saga.Sent, error) { return s.Send(s.Context(), saga.Raw{}) },
				"big": func() (saga.Sent, error) {
					return s.Send(s.Context(), saga.Raw{Name: "question", Body: make([]byte, 2<<20)})
				},
			} {
				sent, err := f()
				s.say("%s: %d copies, no route %v, ambiguous %v, too large %v, %v", what, sent.Copies,
					errors.Is(err, bus.ErrNoRoute), errors.Is(err, bus.ErrAmbiguous), errors.Is(err, saga.ErrTooLarge),
					err)
			}
			id := saga.ID{15: 7}
			first := s.send(question{"a"}, saga.WithID(id))
			again := s.send(question{"a"}, saga.WithID(id))
			_, err := s.Send(s.Context(), question{"b"}, saga.WithID(id))
			s.say("given: %v %v, then %v, then conflict %v", first.ID == id, first.Duplicate, again.Duplicate,
				errors.Is(err, bus.ErrIDConflict))
		},
		want: `
		ambiguous: 0 copies, no route false, ambiguous true, too large false, send charge: several endpoints consume ` +
			`it (first, second): name one with bus.Route or saga.To, or publish it
		big: 0 copies, no route false, ambiguous false, too large true, send: question: body of 2097152 bytes, ` +
			`limit 1048576: too large
		elsewhere: 0 copies, no route true, ambiguous false, too large false, send charge to endpoint "third": no ` +
			`endpoint consumes it: run that endpoint once, or install it (the command is "edda migrate install")
		event: 0 copies, no route false, ambiguous false, too large false, <nil>
		first: handled question
		given: true false, then true, then conflict true
		must route: 0 copies, no route true, ambiguous false, too large false, publish place: no endpoint consumes ` +
			`it (an endpoint consumes charge, question): run an endpoint that handles it once, or install it
		no kind: 0 copies, no route false, ambiguous false, too large false, send: kind "": name of 0 ` +
			`bytes: want 1 to 63 of a-z, 0-9, dot, dash and underscore, beginning with a letter
		routed
		unknown: 0 copies, no route true, ambiguous false, too large false, send place: no endpoint consumes it ` +
			`(an endpoint consumes charge, question): run the endpoint that handles it once, or install it, ` +
			`or name one with bus.Route or saga.To`},
	{name: "a handler that sends what cannot be sent",
		cast: func(s *scene) {
			s.on("notes", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, m note) error {
				switch m.Text {
				case "nowhere":
					ctx.Send(place7{})
				case "to nobody":
					ctx.Reply(answer{})
				case "taken":
					ctx.Send(question{m.Order}, saga.WithID(saga.ID{15: 9}))
				}
				return nil
			}))
			s.on("questions", bus.EndpointOptions{}, bus.Handle(func(_ *bus.Context, m question) error {
				s.say("asked %s", m.Of)
				return nil
			}))
		},
		plot: func(s *scene) {
			s.send(note{"1", "nowhere"})
			s.send(note{"1", "to nobody"})
			s.send(note{"1", "taken"})
			s.await("the first", func() bool { return s.has("asked 1") })
			s.send(note{"1", "taken"}) // the same text again
			s.send(note{"2", "taken"})
		},
		want: `
		asked 1
		notes: dead note after 1, permanent: reply: answer: note came from outside, so there is no sender to answer
		notes: dead note after 1, permanent: send place: no endpoint consumes it (an endpoint consumes note, ` +
			`question): run the endpoint that handles it once, or install it, or name one with bus.Route or saga.To
		notes: dead note after 1, permanent: send with id 00000000-0000-0000-0000-000000000009: the ` +
			`message id was used before with different content
		notes: handled note
		notes: handled note
		questions: handled question`},
	{name: "a handler spoils its copy of the bytes",
		cast: func(s *scene) {
			policy := func(f recoverability.Failure) recoverability.Decision {
				s.say("attempt %d, failed before: %v", f.Info.Attempt, f.First.Before(f.Now))
				if f.Info.Attempt == 1 {
					return recoverability.RetryIn(30 * time.Millisecond)
				}
				return recoverability.DeadLetter()
			}
			s.on("raw", bus.EndpointOptions{Policy: policy}, bus.HandleRaw(
				func(_ *bus.Context, d *saga.Delivery) error {
					s.say("got %s", d.Body)
					clear(d.Body)
					return errors.New("no")
				}, "note"))
		},
		plot: func(s *scene) {
			s.send(saga.Raw{Name: "note", Body: []byte("first")})
			s.await("the letter", func() bool { return len(s.lettersOf()) > 0 })
			for _, l := range s.lettersOf() {
				s.say("letter: %s, grouped %v", l.Body, l.Group == deadletter.GroupOf(&l))
			}
		},
		want: `
		attempt 1, failed before: false
		attempt 2, failed before: true
		got first
		got first
		letter: first, grouped true
		raw: dead note after 2, given up by the policy: no
		raw: retried note after 1 in 30ms: no`},
	{name: "a step that changes nothing makes no version",
		cast: func(s *scene) {
			d := saga.Define("quiet", saga.Options{},
				saga.StartedBy(byOrder, func(*order, *saga.Context, place7) error { return nil }),
				saga.Handles(func(m note) string { return m.Order },
					func(*order, *saga.Context, note) error { return nil }))
			s.show, s.keys = []*saga.Definition{d}, []string{"7"}
			s.on("orders", bus.EndpointOptions{}, bus.Saga(d))
		},
		plot: func(s *scene) {
			s.send(place7{"7"})
			s.await("the start", func() bool { return s.has("orders: handled place by quiet/7") })
			s.send(note{"7", ""})
		},
		want: `
		orders: handled note by quiet/7
		orders: handled place by quiet/7
		quiet/7 is version 1, {"Notes":null,"Paid":false}, and waits for 0 timeouts`},
	{name: "middleware, headers and conversations",
		cast: func(s *scene) {
			s.on("questions", bus.EndpointOptions{}, bus.Use(func(next bus.Handler) bus.Handler {
				return func(ctx context.Context, d *saga.Delivery) error {
					s.say("before %s of %q", d.Info.Kind, d.Info.Header("who"))
					err := next(ctx, d)
					s.say("after %s", d.Info.Kind)
					return err
				}
			}), bus.Handle(func(ctx *bus.Context, m question) error {
				ctx.Publish(answer{m.Of}, saga.WithHeader("who", "the handler"))
				s.say("in the conversation of the question: %v", ctx.Info().ConversationID == ctx.Info().ID)
				return nil
			}))
			s.on("answers", bus.EndpointOptions{}, bus.Handle(func(ctx *bus.Context, _ answer) error {
				info := ctx.Info()
				s.say("answer of %s, %q: one conversation %v, caused by the question %v, intent %v", info.From,
					info.Header("who"), info.ConversationID == info.RelatedTo, info.RelatedTo == info.CorrelationID,
					info.Intent)
				return nil
			}))
		},
		plot: func(s *scene) { s.send(question{"life"}, saga.WithHeader("who", "an outsider")) },
		want: `
		after question
		answer of questions, "the handler": one conversation true, caused by the question true, intent publish
		answers: handled answer
		before question of "an outsider"
		in the conversation of the question: true
		questions: handled question`},
	{name: "answers to the one who began",
		cast: func(s *scene) {
			asks := saga.Define("asks", saga.Options{},
				saga.StartedBy(byOrder, func(_ *order, ctx *saga.Context, m place7) error {
					ctx.Send(question{m.Order})
					return nil
				}),
				saga.OnReply(func(_ *order, ctx *saga.Context, m answer) error {
					s.say("%s was answered: %s", ctx.Key(), m.To)
					ctx.Complete()
					return nil
				}))
			thinks := saga.Define("thinks", saga.Options{},
				saga.StartedBy(func(m question) string { return m.Of },
					func(_ *order, ctx *saga.Context, _ question) error {
						ctx.Timeout(30*time.Millisecond, overdue{"enough"})
						return nil
					}),
				saga.OnTimeout(func(_ *order, ctx *saga.Context, m overdue) error {
					ctx.ReplyToOriginator(answer{m.Why})
					ctx.Complete()
					return nil
				}))
			s.show, s.keys = []*saga.Definition{asks, thinks}, []string{"7"}
			s.on("asking", bus.EndpointOptions{}, bus.Saga(asks))
			s.on("thinking", bus.EndpointOptions{}, bus.Saga(thinks))
		},
		plot: func(s *scene) { s.send(place7{"7"}) },
		want: `
		7 was answered: enough
		asking: handled answer by asks/7
		asking: handled place by asks/7
		asks/7 is not there
		thinking: handled overdue by thinks/7
		thinking: handled question by thinks/7
		thinks/7 is not there`},
	{name: "a policy pauses its endpoint",
		cast: func(s *scene) {
			failed := false
			s.on("notes", bus.EndpointOptions{Policy: func(recoverability.Failure) recoverability.Decision {
				return recoverability.PauseEndpoint("the printer burns")
			}}, bus.Handle(func(*bus.Context, note) error {
				if !failed {
					failed = true
					return errors.New("smoke")
				}
				return nil
			}))
		},
		plot: func(s *scene) {
			s.send(note{"1", ""})
			s.await("the pause", func() bool { return s.has("notes: paused: the printer burns") })
			if err := s.resume(s.Context(), "notes"); err != nil {
				s.Fatal(err)
			}
		},
		want: `
		notes: handled note
		notes: paused: the printer burns
		notes: retried note after 1 in 1s: smoke`},
	{name: "a raw handler leaves its message for a moment",
		cast: func(s *scene) {
			calls := 0
			s.on("raw", bus.EndpointOptions{Poll: 20 * time.Millisecond, Concurrency: 1}, bus.HandleRaw(
				func(ctx *bus.Context, d *saga.Delivery) error {
					if calls++; calls < 3 {
						return bus.ErrLeave
					}
					s.say("%s at attempt %d", d.Body, d.Info.Attempt)
					return nil
				}, "note"))
		},
		plot: func(s *scene) { s.send(saga.Raw{Name: "note", Body: []byte("first")}) },
		want: `
		first at attempt 1
		raw: handled note`},
	{name: "messages of one key come in order",
		cast: func(s *scene) {
			s.on("notes", bus.EndpointOptions{Ordered: bus.Strict, Policy: twice}, inOrder(s))
			s.on("quick", bus.EndpointOptions{Ordered: bus.Overtaking, Policy: twice, DirectOnly: true}, inOrder(s))
		},
		plot: func(s *scene) {
			for _, endpoint := range []string{"notes", "quick"} {
				for n := range 4 {
					s.send(note{"7", strconv.Itoa(n)}, saga.To(endpoint))
				}
			}
		},
		want: `
		notes got 0 0 0 1 2 3
		notes: handled note
		notes: handled note
		notes: handled note
		notes: handled note
		notes: retried note after 1 in 0s: not yet
		notes: retried note after 2 in 30ms: not yet
		quick: handled note
		quick: handled note
		quick: handled note
		quick: handled note
		quick: retried note after 1 in 0s: not yet
		quick: retried note after 2 in 30ms: not yet`},
	{name: "runs of manifests", options: bus.Options{Routes: []bus.Routing{bus.Route[note]("notes")}},
		cast: func(s *scene) {
			once := scheduler.Once(time.Now().Add(-time.Second))
			s.manifests(
				scheduler.Manifest{Name: "good", When: once, Message: note{"1", "good"}},
				scheduler.Manifest{Name: "after", When: scheduler.After("good"), Message: note{"2", "after"}},
				scheduler.Manifest{Name: "bad", When: scheduler.OnDemand(), Message: note{"3", "bad"}, Retries: 1,
					RetryDelay: time.Second},
				scheduler.Manifest{Name: "hopeless", When: scheduler.OnDemand(), Message: note{"4", "hopeless"}},
				scheduler.Manifest{Name: "saga", When: scheduler.OnDemand(), Message: place7{"9"}},
			)
			s.on("notes", bus.EndpointOptions{Policy: func(recoverability.Failure) recoverability.Decision {
				return recoverability.DeadLetter()
			}}, bus.Handle(func(ctx *bus.Context, m note) error {
				fire := ctx.Info().Firing
				run, err := s.runs.RunOf(ctx, fire.Run)
				s.say("%s, attempt %d of %s, which is %s (%v)", m.Text, fire.Attempt, fire.Manifest, run.State, err)
				switch m.Text {
				case "bad":
					return errors.New("no")
				case "hopeless":
					return saga.Permanent(errors.New("never"))
				}
				return nil
			}))
			s.on("orders", bus.EndpointOptions{}, bus.Saga(shop(50*time.Millisecond, saga.Options{})))
			s.on("payment", bus.EndpointOptions{}, bus.Handle(func(*bus.Context, charge) error { return nil }))
		},
		plot: func(s *scene) {
			for _, manifest := range []string{"bad", "hopeless", "saga"} {
				var id saga.ID
				var err error
				s.await("manifest "+manifest, func() bool { // Run declares it at its beginning
					id, err = s.runs.Trigger(s.Context(), manifest, nil, scheduler.TriggerOptions{})
					return !errors.Is(err, scheduler.ErrNoManifest)
				})
				if err != nil {
					s.Fatal(err)
				}
				var run scheduler.RunInfo
				s.await("the end of "+manifest, func() bool {
					run, err = s.runs.RunOf(s.Context(), id)
					if err != nil {
						s.Fatal(err)
					}
					return run.State == scheduler.RunDead || run.State.Ended()
				})
				s.say("%s is %s after %d: %q", manifest, run.State, run.Attempt, run.Error)
			}
			s.await("the follower", func() bool { return s.has("after, attempt 1 of after, which is active (<nil>)") })
		},
		want: `
		after, attempt 1 of after, which is active (<nil>)
		bad is dead after 2: "no"
		bad, attempt 1 of bad, which is active (<nil>)
		bad, attempt 2 of bad, which is active (<nil>)
		good, attempt 1 of good, which is active (<nil>)
		hopeless is dead after 1: "never"
		hopeless, attempt 1 of hopeless, which is active (<nil>)
		notes: handled note
		notes: handled note
		notes: run failed note, final false, given up by the policy: no
		notes: run failed note, final false, given up by the policy: no
		notes: run failed note, final true, permanent: never
		orders: handled overdue by order/9
		orders: handled place by order/9
		payment: handled charge
		saga is succeeded after 1: ""`},
}

// inOrder adds one line with the order in which the messages arrived. The first message fails twice.
func inOrder(s *scene) bus.Part {
	var got []string
	return bus.Handle(func(ctx *bus.Context, m note) error {
		got = append(got, m.Text) // one at a time, because all have the same key
		if m.Text == "0" && ctx.Info().Attempt < 3 {
			return errors.New("not yet")
		}
		if len(got) == 6 && m.Text == "3" {
			s.say("notes got %s", strings.Join(got, " "))
		}
		return nil
	}, bus.KeyedBy(func(m note) string { return m.Order }))
}
