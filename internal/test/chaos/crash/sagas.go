package crash

import (
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The messages of the sagas.
type (
	turn struct { // starts an instance when there is none with the key
		Key, Plan string
		Given     saga.ID
	}
	poke   struct{ Key string } // does not start one
	ask    struct{}
	answer struct{}
	tick   struct{}
	step   struct { // a saga's account of one of its steps
		Saga, Key, Plan, By string
		Instance, Message   saga.ID
		N                   int
		Look, Completed     bool
		Pending             []saga.ID
		Sent                []ref
	}
)

func (turn) Kind() string   { return "crash.turn" }
func (poke) Kind() string   { return "crash.poke" }
func (ask) Kind() string    { return "crash.ask" }
func (answer) Kind() string { return "crash.answer" }
func (tick) Kind() string   { return "crash.tick" }
func (step) Kind() string   { return "crash.step" }

// turnPlans are what a turn may be told to do, and where it ends.
var turnPlans = map[string]fate{
	"step": handled, "look": handled, "ask": handled, "relay": handled, "publish": handled, "given": handled,
	"timer": handled, "cancel": handled, "alarm": handled, "complete": handled,
	"retry": handled, "dead": dead, "discard": discarded,
}

// account is the state of both sagas: how many steps the instance has made.
type account struct{ Steps int }

// sagaEndpoints are the endpoints that sagas add to the plain ones. A saga has the name of its endpoint.
func (w *worker) sagaEndpoints() map[string][]bus.Part {
	return map[string][]bus.Part{
		"pess":    {bus.Saga(w.define("pess", saga.Pessimistic))},
		"opt":     {bus.Saga(w.define("opt", saga.Optimistic))},
		"answers": {bus.HandleTx(w.answer)},
		"book":    {bus.HandleTx(w.book)},
	}
}

func (w *worker) define(name string, store saga.Store) *saga.Definition {
	return saga.Define(name, saga.Options{Store: store},
		saga.StartedBy(func(m turn) string { return m.Key }, func(a *account, ctx *saga.Context, m turn) error {
			if err := a.fail(ctx, m.Plan); err != nil {
				return err
			}
			a.act(ctx, m, w.begin(ctx, name, m.Plan))
			return nil
		}),
		saga.Handles(func(m poke) string { return m.Key }, func(a *account, ctx *saga.Context, _ poke) error {
			a.send(ctx, w.begin(ctx, name, "poke"))
			return nil
		}, saga.IfMissing(saga.MissingDeadLetter)),
		saga.OnReply(func(a *account, ctx *saga.Context, _ answer) error {
			a.send(ctx, w.begin(ctx, name, "answer"))
			return nil
		}),
		saga.OnTimeout(func(a *account, ctx *saga.Context, _ tick) error {
			a.send(ctx, w.begin(ctx, name, "fired"))
			return nil
		}),
	)
}

func (w *worker) begin(ctx *saga.Context, name, plan string) *step {
	return &step{Saga: name, Key: ctx.Key(), Plan: plan, By: w.Name, Instance: ctx.Instance(), Message: ctx.Info().ID}
}

// send counts the step and sends the account of it.
func (a *account) send(ctx *saga.Context, s *step) {
	if !s.Look {
		a.Steps++
	}
	s.N = a.Steps
	for _, p := range ctx.Timeouts() {
		s.Pending = append(s.Pending, p.ID)
		s.Sent = append(s.Sent, ref{ID: p.ID, Endpoint: s.Saga, Plan: "timer", Fate: timer})
	}
	ctx.Send(*s)
	if s.Completed {
		ctx.Complete()
	}
}

// act does what the plan says.
func (a *account) act(ctx *saga.Context, m turn, s *step) {
	switch m.Plan {
	case "look":
		s.Look = true
	case "ask":
		s.Sent = []ref{{ID: ctx.Send(ask{}), Endpoint: "answers", Plan: "ask", Fate: handled}}
	case "relay":
		s.Sent = []ref{{ID: ctx.Send(relay{}), Endpoint: "relay", Plan: "relayed", Fate: handled}}
	case "given":
		s.Sent = []ref{givenRef(ctx.Send(relay{Text: m.Given.String()}, saga.WithID(m.Given)))}
	case "publish":
		s.Sent = notedRefs(ctx.Publish(noted{}))
	case "timer":
		// Half of them wait long enough to be cancelled, moved, or overtaken by the end of their instance.
		ctx.Timeout(time.Duration(1+14*int(s.Message[15]&1))*100*time.Millisecond, tick{}, saga.Named("tick"))
	case "alarm":
		ctx.Timeout(10*time.Millisecond, tick{})
	case "cancel":
		ctx.CancelTimeout("tick")
	case "complete":
		s.Completed = true
	}
	a.send(ctx, s)
}

// fail does what plans that fail do, each with a change and a message that must not be seen.
func (a *account) fail(ctx *saga.Context, plan string) error {
	attempt := ctx.Info().Attempt
	var err error
	switch {
	case plan == "retry" && attempt == 1:
		err = errAsked
	case plan == "retry" && attempt == 2:
		err = saga.RetryAfter(100*time.Millisecond, errAsked)
	case plan == "dead":
		err = saga.Permanent(errAsked)
	case plan == "discard":
		err = saga.Discard("the plan of the turn")
	default:
		return nil
	}
	a.Steps += 1000
	ctx.Send(relay{Text: "never to be seen"})
	ctx.Timeout(time.Millisecond, tick{})
	return err
}

// answer replies to the instance that asks. The instance may complete before the answer arrives.
func (w *worker) answer(ctx *bus.Context, tx pgx.Tx, _ ask) error {
	in := ctx.Info()
	reply := ref{ID: ctx.Reply(answer{}), Endpoint: in.From, Plan: "answer", Fate: answered, Instance: in.Origin}
	return w.effect(ctx, tx, "answers", "ask", reply)
}

// book writes the account of a saga's step into the ledger: it is the effect of the message that made the step.
func (w *worker) book(ctx *bus.Context, tx pgx.Tx, s step) error {
	batch := &pgx.Batch{}
	batch.Queue(sql.Get("crash_effect"), s.Message.String(), s.Saga, s.Plan, s.By)
	batch.Queue(sql.Get("crash_step"), s.Instance.String(), s.Saga, s.Key, s.N, s.Look, s.Message.String(),
		s.Plan, texts(s.Pending), s.Completed, s.By)
	queueSent(batch, s.By, s.Sent...)
	return tx.SendBatch(ctx, batch).Close()
}

func texts(ids []saga.ID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}
