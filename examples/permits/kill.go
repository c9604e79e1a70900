package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

// killer kills workers in flight: with a batch open, which Postgres has shown to another connection.
type killer struct {
	*database
	crew    *procs.Workers
	random  *rand.Rand
	moments []time.Time // by this process's clock
}

// batch is an open batch of a worker, as the database shows it.
type batch struct {
	backend int
	xid     string // with its epoch
	queue   string
	moved   string // when the session last began or ended to do anything
}

// momentsOf spreads n kills at random over the run; the last tenth is left, for after its end there is nothing to kill.
func momentsOf(random *rand.Rand, begin time.Time, lasting time.Duration, n int) []time.Time {
	moments := make([]time.Time, n)
	for i := range moments {
		moments[i] = begin.Add(time.Duration((0.02 + 0.88*random.Float64()) * float64(lasting)))
	}
	slices.SortFunc(moments, time.Time.Compare)
	return moments
}

// run kills one worker at each moment, or as soon after it as one is caught with an open batch.
func (k *killer) run(ctx context.Context) error {
	for _, at := range k.moments {
		if err := run.Sleep(ctx, time.Until(at)); err != nil {
			return err
		}
		for {
			inFlight, err := k.strike(ctx)
			if err != nil {
				return err
			}
			if inFlight {
				break
			}
			pause := time.Duration(1+k.random.IntN(20)) * time.Millisecond
			if err := run.Sleep(ctx, pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// A stopped worker's session must stand still for some looks before we believe that nothing is on its way: on a busy
// machine a COMMIT may lie in the socket for a while before Postgres reads it. Each look wakes Postgres, so the other
// session, if it had something to read, would have had its turn as well.
const (
	looks    = 10
	lookWait = 10 * time.Millisecond
)

// strike stops a worker at a random moment, looks whether it has a batch open and stays at it, and kills it if so. A
// stopped process sends nothing, and a session that waits for it does nothing; so what was seen is true when the kill
// lands. Afterwards Postgres is asked what became of the transaction: if it was committed all the same, the kill was
// too late, and is told as one that was not in flight.
func (k *killer) strike(ctx context.Context) (inFlight bool, err error) {
	p := k.crew.Any(k.random)
	if p == nil {
		return false, nil
	}
	p.Freeze()
	defer p.Thaw()
	b, open, err := k.look(ctx, p)
	for n := 1; n < looks && open && err == nil; n++ {
		if err = run.Sleep(ctx, lookWait); err != nil {
			break
		}
		var again batch
		again, open, err = k.look(ctx, p)
		open = open && again == b
	}
	if err != nil || !open {
		return false, err
	}
	p.Kill()
	return k.report(context.WithoutCancel(ctx), p, b)
}

func (k *killer) look(ctx context.Context, p *procs.Process) (b batch, open bool, err error) {
	err = k.pool.QueryRow(ctx, k.sql.Get("open_batch"), p.Name).Scan(&b.backend, &b.xid, &b.queue, &b.moved)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return batch{}, false, nil
	case err != nil:
		return batch{}, false, fmt.Errorf("look for an open batch of worker %s: %w", p.Name, err)
	}
	return b, true, nil
}

// report waits until Postgres has noticed the death, and writes down the kill with the end of its transaction.
func (k *killer) report(ctx context.Context, p *procs.Process, b batch) (inFlight bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	outcome := "in progress"
	for outcome == "in progress" {
		if err := run.Sleep(ctx, time.Millisecond); err != nil {
			return false, fmt.Errorf("wait for the end of the transaction of worker %s: %w", p.Name, err)
		}
		if err := k.pool.QueryRow(ctx, k.sql.Get("outcome"), b.xid).Scan(&outcome); err != nil {
			return false, fmt.Errorf("ask for the outcome of the transaction of worker %s: %w", p.Name, err)
		}
	}
	if _, err := k.pool.Exec(ctx, k.sql.Get("record_kill"), p.Name, b.backend, b.xid, b.queue, outcome); err != nil {
		return false, fmt.Errorf("record the kill of worker %s: %w", p.Name, err)
	}
	return outcome == "aborted", nil
}

// killsDone is how many kills in flight an earlier process of this run has made.
func (d *database) killsDone(ctx context.Context) (n int, err error) {
	if err = d.pool.QueryRow(ctx, d.sql.Get("count_kills")).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the kills: %w", err)
	}
	return n, nil
}
