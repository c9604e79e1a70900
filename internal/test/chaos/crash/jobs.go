package crash

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The messages of plain handlers.
type (
	job struct {
		Plan  string
		Given saga.ID
	}
	relay struct{ Text string }
	noted struct{ Text string }
)

func (job) Kind() string   { return "crash.job" }
func (relay) Kind() string { return "crash.relay" }
func (noted) Kind() string { return "crash.noted" }

// jobPlans are what a job may be told to do, and where it ends.
var jobPlans = map[string]fate{
	"plain": handled, "relay": handled, "publish": handled, "later": handled, "given": handled, "tally": handled,
	"retry": handled, "panic": handled, "dead": dead, "discard": discarded,
}

var errAsked = errors.New("the plan of the job is to fail")

// plainEndpoints are the endpoints of plain handlers, each with its name.
func (w *worker) plainEndpoints() map[string][]bus.Part {
	return map[string][]bus.Part{
		"jobs":    {bus.HandleTx(w.job)},
		"relay":   {noting[relay](w, "relay", "relay")},
		"audit.a": {noting[noted](w, "audit.a", "noted")},
		"audit.b": {noting[noted](w, "audit.b", "noted")},
	}
}

// noting is a handler that has an effect and does nothing else.
func noting[M saga.Message](w *worker, endpoint, plan string) bus.Part {
	return bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ M) error { return w.effect(ctx, tx, endpoint, plan) })
}

// effect writes down that the message in hand was handled, and what its handler sent.
func (w *worker) effect(ctx *bus.Context, tx pgx.Tx, endpoint, plan string, sent ...ref) error {
	batch := &pgx.Batch{}
	batch.Queue(sql.Get("crash_effect"), ctx.Info().ID.String(), endpoint, plan, w.Name)
	queueSent(batch, w.Name, sent...)
	return tx.SendBatch(ctx, batch).Close()
}

func (w *worker) job(ctx *bus.Context, tx pgx.Tx, m job) error {
	if err := w.fail(ctx, tx, m.Plan); err != nil {
		return err
	}
	var sent []ref
	switch m.Plan {
	case "relay":
		sent = []ref{{ID: ctx.Send(relay{}), Endpoint: "relay", Plan: "relayed", Fate: handled}}
	case "later":
		sent = []ref{{ID: ctx.Send(relay{}, saga.Delay(200*time.Millisecond)), Endpoint: "relay", Plan: "later",
			Fate: handled}}
	case "given":
		sent = []ref{givenRef(ctx.Send(relay{Text: m.Given.String()}, saga.WithID(m.Given)))}
	case "publish":
		sent = notedRefs(ctx.Publish(noted{}))
	case "tally":
		h := fnv.New32()
		_, _ = h.Write([]byte(ctx.Info().ID.String())) // a hash never fails
		if _, err := tx.Exec(ctx, sql.Get("crash_tally"), h.Sum32()%16); err != nil {
			return err
		}
	}
	return w.effect(ctx, tx, "jobs", m.Plan, sent...)
}

// fail does what plans that fail do, each with effects that must not be seen.
func (w *worker) fail(ctx *bus.Context, tx pgx.Tx, plan string) error {
	attempt := ctx.Info().Attempt
	undone := func() error {
		ctx.Send(relay{Text: "never to be seen"})
		return w.effect(ctx, tx, "jobs", "undone")
	}
	switch {
	case plan == "retry" && attempt == 1:
		return errors.Join(undone(), errAsked)
	case plan == "retry" && attempt == 2:
		return saga.RetryAfter(100*time.Millisecond, errors.Join(undone(), errAsked))
	case plan == "retry" && attempt == 3: // the statement fails, the handler does not say so
		_, _ = tx.Exec(ctx, "SELECT 1 / 0")
		return nil
	case plan == "panic" && attempt == 1:
		panic(fmt.Sprint(undone(), errAsked))
	case plan == "dead":
		return saga.Permanent(errors.Join(undone(), errAsked))
	case plan == "discard":
		if err := undone(); err != nil {
			return err
		}
		return saga.Discard("the plan of the job")
	}
	return nil
}

func givenRef(id saga.ID) ref {
	return ref{ID: id, Endpoint: "relay", Plan: "given", Fate: handled, Given: true}
}

func notedRefs(id saga.ID) []ref {
	return []ref{
		{ID: id, Endpoint: "audit.a", Plan: "noted", Fate: handled},
		{ID: id, Endpoint: "audit.b", Plan: "noted", Fate: handled},
	}
}
