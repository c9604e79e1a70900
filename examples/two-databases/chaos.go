package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
)

const (
	crewOfEach = 2               // worker processes of each service
	payWithin  = 4 * time.Second // short, so that timeouts fire while servers are away
	patience   = 2 * time.Minute // for everything to come to rest when nothing is killed any more
)

// chaos is what is done to the lab, and how often.
type chaos struct {
	*lab
	crew        *procs.Workers
	kills       int          // of workers
	repeated    atomic.Int64 // messages that came to an intake and were there before
	out         io.Writer
	begun       time.Time
	crashes     int // of Postgres servers
	freezes     int // of workers
	nodeKills   int // of the broker
	nodeFreezes int

	mu sync.Mutex // guards out while others strike
}

// unleash runs worker processes of both services, kills whatever there is while orders are placed, lets everything come
// to rest, and counts.
func unleash(ctx context.Context, s settings, out io.Writer) (err error) {
	_, _ = fmt.Fprintf(out, "two-databases: seed %d\n", s.seed)
	l, err := openLab(ctx, labOptions{nodes: 3, payWithin: payWithin})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var places []worker
	for range crewOfEach {
		places = append(places, l.orders.worker, l.payments.worker)
	}
	c := &chaos{lab: l, out: out, begun: time.Now()}
	c.crew = procs.NewWorkers(len(places), func(place, life int) procs.Job { return c.job(places[place], place, life) },
		procs.Options{})
	b := &buyers{shop: l.shop, random: rand.New(rand.NewPCG(s.seed, 1)), rate: s.rate}
	var drained time.Duration
	all := run.NewGroup(ctx)
	all.Go(c.crew.Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := c.rage(ctx, s, b); err != nil {
			return err
		}
		drained = l.drain(ctx, patience)
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was checked")
	}
	return c.judge(ctx, b, drained)
}

// job is the worker of a place, in one of its lives. What it reports is a number on each line.
func (c *chaos) job(w worker, place, life int) procs.Job {
	w.Name = fmt.Sprintf("%s-%d-%d", w.Service, place+1, life)
	reports := procs.Lines(func(line string) {
		if n, err := strconv.ParseInt(line, 10, 64); err == nil {
			c.repeated.Add(n)
		}
	})
	return procs.Job{Name: w.Name, Variable: workerVariable, Task: w, Stdout: reports}
}

// rage places orders and kills until the time is over. Whoever is down is up again when it returns.
func (c *chaos) rage(ctx context.Context, s settings, b *buyers) error {
	ctx, stop := context.WithTimeout(ctx, s.lasting())
	defer stop()
	all := run.NewGroup(ctx)
	all.Go(b.run)
	for n, strike := range []func(context.Context, *rand.Rand) error{c.killWorker, c.crashServer, c.strikeNode,
		c.freezeWorker} {
		random := rand.New(rand.NewPCG(s.seed, uint64(2+n)))
		pause := []time.Duration{1500 * time.Millisecond, 6 * time.Second, 5 * time.Second, 5 * time.Second}[n]
		all.Go(func(ctx context.Context) error {
			for {
				if run.Sleep(ctx, pause/2+time.Duration(random.Int64N(int64(pause)))) != nil {
					return nil
				}
				if err := strike(context.WithoutCancel(ctx), random); err != nil {
					return err
				}
			}
		})
	}
	return all.Wait()
}

func (c *chaos) killWorker(_ context.Context, random *rand.Rand) error {
	if w := c.crew.Any(random); w != nil {
		w.Kill()
		c.kills++
		c.tell("worker %s is killed", w.Name)
	}
	return nil
}

// crashServer ends all processes of a Postgres at once, of one service and the other in turn. It recovers from its log.
func (c *chaos) crashServer(ctx context.Context, _ *rand.Rand) error {
	s := []*site{c.orders, c.payments}[c.crashes%2]
	begun := time.Now()
	if err := s.server.Restart(ctx, pgdev.Immediate); err != nil {
		return err
	}
	c.crashes++
	c.tell("the database of %s crashed, and recovered within %.1f s", s.worker.Service, time.Since(begun).Seconds())
	return nil
}

// strikeNode is one of the two, since two nodes of three have to be there.
func (c *chaos) strikeNode(ctx context.Context, random *rand.Rand) error {
	if random.IntN(3) == 0 {
		return c.freezeNode(ctx, random)
	}
	return c.killNode(ctx, random)
}

// killNode kills a node of the broker, and starts it again after a while. The others go on, since they are two of
// three.
func (c *chaos) killNode(ctx context.Context, random *rand.Rand) error {
	node := random.IntN(c.broker.Nodes())
	if err := c.broker.Kill(node); err != nil {
		return err
	}
	c.nodeKills++
	begun := time.Now()
	if err := run.Sleep(ctx, time.Duration(random.Int64N(int64(2*time.Second)))); err != nil {
		return err
	}
	if err := c.broker.Restart(ctx, node); err != nil {
		return err
	}
	c.tell("node %d of the broker was killed, and is back after %.1f s", node+1, time.Since(begun).Seconds())
	return nil
}

// judge checks, and prints the line.
func (c *chaos) judge(ctx context.Context, b *buyers, drained time.Duration) error {
	v, err := c.lab.judge(ctx)
	if err != nil {
		return err
	}
	delays := 0
	if err := c.orders.each(ctx, "delays", []any{&delays}, func() {}); err != nil {
		return err
	}
	v.tell(c.out)
	_, _ = fmt.Fprintf(c.out, "%d times a buyer was told that the payment takes long, %d times that the order "+
		"could not be placed\n", delays, b.turned.Load())
	_, _ = fmt.Fprintf(c.out, "%d times a message crossed the border that had crossed it before, and was dropped "+
		"by the inbox\n", c.repeated.Load())
	_, _ = fmt.Fprintf(c.out, "%s kills=%d freezes=%d crashes=%d node_kills=%d node_freezes=%d drained=%.1fs\n",
		v, c.kills, c.freezes, c.crashes, c.nodeKills, c.nodeFreezes, drained.Seconds())
	if !v.fine() {
		return errWrong
	}
	return nil
}

func (c *chaos) tell(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, "%5.1f s  %s\n", time.Since(c.begun).Seconds(), fmt.Sprintf(format, args...))
}
