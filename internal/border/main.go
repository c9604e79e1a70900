package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/edda-go/edda/internal/border/cluster"
	"github.com/edda-go/edda/internal/procs"
)

type settings struct {
	backlog int
	lag     time.Duration
	rate    int
	faults  time.Duration
	seed    uint64
	profile string
	over    string
}

// wants tells whether lag and faults go this way, too.
func (s settings) wants(w way) bool { return s.over == "" || s.over == w.String() }

func main() {
	cluster.RunNode()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if procs.IsWorker(workerVariable) {
		exit(work(ctx))
		return
	}
	s := settings{}
	flag.IntVar(&s.backlog, "backlog", 100_000,
		"messages that are relayed to measure the speed; 0 leaves the phase out")
	flag.DurationVar(&s.lag, "lag", 15*time.Second, "how long the lag is measured; 0 leaves the phase out")
	flag.IntVar(&s.rate, "rate", 1000, "messages a second while the lag is measured")
	flag.DurationVar(&s.faults, "faults", time.Minute, "how long nodes, workers and Postgres are killed and "+
		"frozen; 0 leaves the phase out")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "decides what is killed when")
	flag.StringVar(&s.profile, "cpuprofile", "",
		"write the profile of the fastest relay to a file storage to this file")
	flag.StringVar(&s.over, "over", "", "what lag and faults go over: batches or watermill-nats; empty is one "+
		"after the other")
	flag.Parse()
	exit(runPhases(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "border:", err)
		os.Exit(1)
	}
}

var errBroken = errors.New("the promise was broken")

func runPhases(ctx context.Context, s settings) error {
	phases := []struct {
		wanted bool
		phase  func(context.Context, settings) error
	}{{s.backlog > 0, speed}, {s.backlog > 0, takeIn}, {s.lag > 0, lag}, {s.faults > 0, faults}}
	for _, p := range phases {
		if !p.wanted {
			continue
		}
		if err := p.phase(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
