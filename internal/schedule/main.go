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

	"github.com/edda-go/edda/internal/procs"
)

type settings struct {
	servers   int
	manifests int
	length    time.Duration // with all guards
	others    time.Duration // with less of them
	clock     bool
	broken    bool
	seed      uint64
}

// mode is one part of the test.
type mode struct {
	name          string
	length        time.Duration
	NoLease       bool
	NoLock        bool
	WithoutUnique bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if procs.IsWorker(serverVariable) {
		exit(serve(ctx))
		return
	}
	s := settings{}
	flag.IntVar(&s.servers, "servers", 3, "server processes")
	flag.IntVar(&s.manifests, "manifests", 1000, "manifests, each due every second")
	flag.DurationVar(&s.length, "for", time.Minute, "how long servers die and the clock jumps, with all guards")
	flag.DurationVar(&s.others, "others", 20*time.Second, "the same with a guard less; 0 leaves these parts out")
	flag.BoolVar(&s.clock, "clock", true, "move the database's clock")
	flag.BoolVar(&s.broken, "broken", false, "drop the unique indexes and both guards, and expect doubles")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "decides what happens when")
	flag.Parse()
	exit(all(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "schedule:", err)
		os.Exit(1)
	}
}

var (
	errBroken = errors.New("the promise was broken")
	errBlind  = errors.New("no double was seen, though nothing kept servers apart: the test is blind")
)

func all(ctx context.Context, s settings) error {
	fmt.Printf("schedule: seed %d\n", s.seed)
	broken := false
	for _, m := range s.modes() {
		found, err := try(ctx, s, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Println(found.line(m))
		switch {
		case m.WithoutUnique && found.double == 0:
			return errBlind
		case !m.WithoutUnique && found.broken():
			broken = true
		}
	}
	if broken {
		return errBroken
	}
	return nil
}

func (s settings) modes() []mode {
	if s.broken {
		return []mode{{name: "no guard and no index", length: s.others, NoLease: true, NoLock: true,
			WithoutUnique: true}}
	}
	modes := []mode{{name: "all guards", length: s.length}}
	if s.others > 0 {
		modes = append(modes,
			mode{name: "no lock", length: s.others, NoLock: true},
			mode{name: "no lease", length: s.others, NoLease: true},
			mode{name: "no lock, no lease", length: s.others, NoLease: true, NoLock: true})
	}
	return modes
}
