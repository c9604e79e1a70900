package crash

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	fullQueues = 600 // messages; the feeder waits while there are as many
	keys       = 40  // of each saga: few, so that instances are fought over, complete and live again
	hotKeys    = 3   // fought over most of all, by messages that give ids
)

// feeder sends messages and writes down what it sent. It belongs to one goroutine.
type feeder struct {
	arena *arena
	proxy *faultproxy.Proxy
	pool  *pgxpool.Pool // through the proxy
	bus   *bus.Bus
	dice  *rand.Rand
	given []saga.ID // lately used as ids that handlers are told to give
	jobs  []string
	turns []string
}

func openFeeder(ctx context.Context, a *arena, backend string) (f *feeder, err error) {
	f = &feeder{
		arena: a, dice: rand.New(rand.NewPCG(a.Seed, 1)),
		jobs: slices.Sorted(maps.Keys(jobPlans)), turns: slices.Sorted(maps.Keys(turnPlans)),
	}
	if f.proxy, err = faultproxy.Listen(ctx, backend, faultproxy.Options{Seed: a.Seed}); err != nil {
		return nil, err
	}
	if f.pool, err = lab.OpenPool(ctx, f.proxy.DSN(a.Server.DSN()), "feeder", ""); err != nil {
		return nil, err
	}
	f.bus, err = bus.New(f.pool, bus.Options{})
	return f, err
}

// draft is a message to be sent, and where it must end.
type draft struct {
	message saga.Message
	publish bool
	to      string
	plan    string
	fate    fate
}

// run feeds until ctx ends. A connection that is lost is no trouble: the ledger is in the same transaction.
func (f *feeder) run(ctx context.Context) error {
	for ctx.Err() == nil {
		backlog, err := f.arena.Left(ctx)
		if err != nil || backlog >= fullQueues {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if f.dice.IntN(8) == 0 {
			f.alone(context.WithoutCancel(ctx))
			continue
		}
		if err := f.together(ctx); err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// together sends some messages and writes them down in one transaction.
func (f *feeder) together(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n := 1 + f.dice.IntN(20)
	return f.bus.InTx(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for range n {
			d := f.next()
			id, err := f.send(ctx, tx, d)
			if err != nil {
				return err
			}
			queueSent(batch, "feeder", f.refs(d, id, false)...)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

func (f *feeder) send(ctx context.Context, tx pgx.Tx, d draft) (saga.ID, error) {
	if d.publish {
		sent, err := f.bus.PublishTx(ctx, tx, d.message)
		return sent.ID, err
	}
	sent, err := f.bus.SendTx(ctx, tx, d.message, saga.To(d.to))
	return sent.ID, err
}

// alone does what a caller without a transaction does: it promises a message under an id of its own, and sends
// it until it hears that it was sent. The replies may be lost, the message must be there once.
func (f *feeder) alone(ctx context.Context) {
	d, id := f.next(), saga.ID(uuid.New())
	until(ctx, func() error {
		batch := &pgx.Batch{}
		queueSent(batch, "feeder, alone", f.refs(d, id, true)...)
		return f.arena.Pool.SendBatch(ctx, batch).Close()
	})
	until(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if d.publish {
			_, err := f.bus.Publish(ctx, d.message, saga.WithID(id))
			return err
		}
		_, err := f.bus.Send(ctx, d.message, saga.To(d.to), saga.WithID(id))
		return err
	})
}

// until tries again for a minute, which is longer than any restart takes.
func until(ctx context.Context, try func() error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for try() != nil {
		if run.Sleep(ctx, 10*time.Millisecond) != nil {
			return
		}
	}
}

func (f *feeder) refs(d draft, id saga.ID, given bool) []ref {
	refs := []ref{{ID: id, Endpoint: d.to, Plan: d.plan, Fate: d.fate}}
	if d.publish {
		refs = notedRefs(id)
	}
	for i := range refs {
		refs[i].Given = given
	}
	return refs
}

// next draws a message.
func (f *feeder) next() draft {
	switch {
	case f.dice.IntN(20) == 0:
		return draft{message: noted{}, publish: true}
	case f.arena.workload == bare || f.dice.IntN(4) == 0:
		plan := pick(f.dice, f.jobs)
		return draft{message: job{Plan: plan, Given: f.giveID()}, to: "jobs", plan: plan, fate: jobPlans[plan]}
	}
	to, key := pick(f.dice, []string{"pess", "opt"}), fmt.Sprint("k", f.dice.IntN(keys))
	if f.dice.IntN(12) == 0 {
		return draft{message: poke{Key: key}, to: to, plan: "poke", fate: handledOrDead}
	}
	plan := pick(f.dice, f.turns)
	if f.dice.IntN(4) == 0 { // an id that was given by a step which then lost its instance is given back
		plan, to, key = "given", "opt", fmt.Sprint("k", f.dice.IntN(hotKeys))
	}
	return draft{message: turn{Key: key, Plan: plan, Given: f.giveID()}, to: to, plan: plan, fate: turnPlans[plan]}
}

// giveID is an id for a handler to give. Two or three handlers get the same.
func (f *feeder) giveID() saga.ID {
	if len(f.given) > 0 && f.dice.IntN(2) == 0 {
		return pick(f.dice, f.given)
	}
	id := saga.ID(uuid.New())
	f.given = append(f.given[max(0, len(f.given)-9):], id)
	return id
}

func pick[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }
