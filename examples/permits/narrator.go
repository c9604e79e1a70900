package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/edda-go/edda/internal/procs"
	"github.com/edda-go/edda/internal/run"
)

// narrator tells how the run goes, and knows when it is over.
type narrator struct {
	*database
	crew  *procs.Workers
	feed  *feed
	out   io.Writer
	begin time.Time
}

// progress is what has been done so far.
type progress struct{ effects, firings, kills, waiting int }

func (n *narrator) open(s settings, p *play) {
	_, _ = fmt.Fprintf(n.out, "%d events of %d cases in %v, store %s, %d workers, %d kills, seed %d\n",
		len(p.log.Events), len(p.log.Cases), p.found.lasting, s.store, s.workers, p.found.kills, s.seed)
	if gone := p.found.now.Sub(p.found.begun); gone > time.Second {
		_, _ = fmt.Fprintf(n.out, "schema %s holds this run already: it goes on after %v. Its -for and its "+
			"-kill count\n", n.own, gone.Round(time.Second))
	}
}

func (n *narrator) read(ctx context.Context) (p progress, err error) {
	err = n.pool.QueryRow(ctx, n.sql.Get("progress")).Scan(&p.effects, &p.firings, &p.kills, &p.waiting)
	if err != nil {
		return p, fmt.Errorf("read the progress: %w", err)
	}
	return p, nil
}

// run prints a line each second.
func (n *narrator) run(ctx context.Context) error {
	for {
		if err := run.Sleep(ctx, time.Second); err != nil {
			return err
		}
		p, err := n.read(ctx)
		if err != nil {
			return err
		}
		n.print(p)
	}
}

func (n *narrator) print(p progress) {
	published := int(n.feed.published.Load())
	_, _ = fmt.Fprintf(n.out, "%4.0fs  published %5d  handled %5d  backlog %4d  timers %4d  workers %2d  kills %3d\n",
		time.Since(n.begin).Seconds(), published, p.effects, max(0, published-p.effects), p.firings,
		len(n.crew.Living()), p.kills)
}

const (
	quietLook  = 50 * time.Millisecond
	quietStall = time.Minute // without any change; what is left then is found by the check
)

// quiet returns when all queues are empty, of timers too.
func (n *narrator) quiet(ctx context.Context) error {
	var last progress
	changed := time.Now()
	for time.Since(changed) < quietStall {
		p, err := n.read(ctx)
		if err != nil {
			return err
		}
		if p.waiting == 0 {
			n.print(p)
			return nil
		}
		if p != last {
			last, changed = p, time.Now()
		}
		if err := run.Sleep(ctx, quietLook); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(n.out, "nothing has changed for %v, and %d messages wait\n", quietStall, last.waiting)
	return nil
}
