package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// turn is a message that comes after all of its key with a smaller number.
type turn struct {
	Key string
	N   int
}

// turnDone is what a turn sends.
type turnDone struct {
	Key string
	N   int
}

func (turn) Kind() string     { return "order.turn" }
func (turnDone) Kind() string { return "order.done" }

const failing = 20 // one run of so many

var errUnlucky = errors.New("one run of twenty fails")

// orderly is a worker process of the scenario of order.
type orderly struct {
	worker string
	pool   *pgxpool.Pool
}

func (w orderly) host(b *bus.Bus) (*edda.Host, error) {
	working, err := bus.NewEndpoint(b, turns, bus.EndpointOptions{
		Ordered: bus.Strict, Lease: lease, Poll: turnPoll,
		Policy: func(recoverability.Failure) recoverability.Decision {
			return recoverability.RetryIn(50 * time.Millisecond)
		},
	}, bus.Handle(w.turn, bus.KeyedBy(func(m turn) string { return m.Key })))
	if err != nil {
		return nil, err
	}
	counting, err := bus.NewEndpoint(b, turnsDone, bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(w.count))
	if err != nil {
		return nil, err
	}
	return edda.NewHost(w.pool, working, counting)
}

// turn tells the ledger when it begins and when it ends, each in a transaction of its own. The end is told also when
// the claim was lost.
func (w orderly) turn(ctx *bus.Context, m turn) (err error) {
	var no int64
	var quick bool
	// Not cancelled: the ledger would have a beginning, and this process would not know of which run.
	if err := w.pool.QueryRow(context.WithoutCancel(ctx), orderSQL("begin"), m.Key, m.N, w.worker,
		os.Getpid()).Scan(&no, &quick); err != nil {
		return err
	}
	defer func() {
		_, told := w.pool.Exec(context.WithoutCancel(ctx), orderSQL("end"), no, err == nil)
		err = errors.Join(err, told)
	}()
	if !quick {
		select {
		case <-time.After(time.Duration(20+rand.IntN(400)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if rand.IntN(failing) == 0 {
		return errUnlucky
	}
	ctx.Send(turnDone(m))
	return nil
}

// count keeps what a turn sent, and when it was sent by the database's clock.
func (orderly) count(ctx *bus.Context, tx pgx.Tx, m turnDone) error {
	_, err := tx.Exec(ctx, orderSQL("count"), m.Key, m.N, ctx.Info().Sent)
	return err
}
