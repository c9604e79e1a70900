package lab

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/procs"
)

// Scenario breaks things in one way and judges the outcome.
type Scenario struct {
	Name  string
	About string              // one line
	Full  Size                // what it does without flags
	Quick Size                // what it does with -quick
	Flags func(*flag.FlagSet) // flags of its own; nil is none
	SQL   pg.Statements       // create makes its tables of the ledger, story lists the rows of one id
	Rules []string            // that Conclude counts even if nothing violates them
	Run   func(ctx context.Context, s Settings) error
	Work  func(ctx context.Context, w *Worker) error // the life of a worker process; nil: it starts none
}

// Size is how long a scenario lasts and how much it breaks. What is zero is not asked of the scenario, or no flag.
type Size struct {
	Workers, Kills, Freezes int
	For                     time.Duration
}

// Settings are what the flags say.
type Settings struct {
	Size
	Scenario Scenario
	Seed     uint64
	Quick    bool
	Verbose  bool // print what workers write
	Out      io.Writer
}

// ErrBroken is the answer of a scenario that found a violation.
var ErrBroken = errors.New("the promise was broken")

// Main is the main function of a program with these scenarios, as the parent or as a worker.
func Main(scenarios ...Scenario) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if IsWorker() {
		exit(Work(ctx, scenarios...))
		return
	}
	exit(runAll(ctx, scenarios))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// runAll runs the scenarios that -scenario names, all of them, and then fails when one has.
func runAll(ctx context.Context, scenarios []Scenario) error {
	names := make([]string, len(scenarios))
	about := "the scenarios to run, separated by commas (default all):"
	for i, s := range scenarios {
		names[i] = s.Name
		about += fmt.Sprintf("\n%s: %s", s.Name, s.About)
		if s.Flags != nil {
			s.Flags(flag.CommandLine)
		}
	}
	given := Settings{Out: os.Stdout}
	chosen := flag.String("scenario", strings.Join(names, ","), about)
	flag.Uint64Var(&given.Seed, "seed", rand.Uint64N(1_000_000), "decides the messages, the faults and their times")
	flag.BoolVar(&given.Quick, "quick", false, "a shorter run of everything")
	flag.BoolVar(&given.Verbose, "v", false, "print the standard error of the workers")
	flag.IntVar(&given.Workers, "workers", 0, "worker processes; 0 is the scenario's number")
	flag.IntVar(&given.Kills, "kills", 0,
		"workers that are killed, where the scenario counts them; 0 is its own number")
	flag.IntVar(&given.Freezes, "freezes", 0,
		"workers that are frozen, where the scenario counts them; 0 is its own number")
	flag.DurationVar(&given.For, "for", 0, "how long things are broken, where the scenario has a time; 0 is its own")
	flag.Parse()
	var failed []string
	for name := range strings.SplitSeq(*chosen, ",") {
		n := slices.Index(names, name)
		if n < 0 {
			return fmt.Errorf("-scenario %s: want some of %s", name, strings.Join(names, ", "))
		}
		if err := runOne(ctx, scenarios[n], given); err != nil {
			fmt.Fprintf(os.Stderr, "chaos: %s: %v\n", name, err)
			failed = append(failed, name)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted: nothing was judged")
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s failed; again: -seed %d -scenario %s", strings.Join(failed, ", "), given.Seed,
			strings.Join(failed, ","))
	}
	return nil
}

func runOne(ctx context.Context, c Scenario, s Settings) error {
	size := c.Full
	if s.Quick {
		size = c.Quick
	}
	s.Scenario = c
	s.Workers, s.Kills = cmp.Or(s.Workers, size.Workers), cmp.Or(s.Kills, size.Kills)
	s.Freezes, s.For = cmp.Or(s.Freezes, size.Freezes), cmp.Or(s.For, size.For)
	_, _ = fmt.Fprintf(s.Out, "%s: seed %d\n", c.Name, s.Seed)
	return c.Run(ctx, s)
}

// variable makes the program a worker; its value is the Worker as JSON.
const variable = "EDDA_CHAOS_WORKER"

// IsWorker reports whether this process is a worker of a scenario.
func IsWorker() bool { return procs.IsWorker(variable) }

// Work is the life of a worker process of one of the scenarios.
func Work(ctx context.Context, scenarios ...Scenario) error {
	w := &Worker{Calm: make(chan struct{})}
	ctx, err := procs.Listen(ctx, variable, w, w.hear)
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		if s.Name == w.Scenario {
			return s.Work(ctx, w)
		}
	}
	return fmt.Errorf("there is no scenario %q for this worker", w.Scenario)
}
