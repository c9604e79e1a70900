package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/test/demo"
	"github.com/edda-go/edda/saga"
)

const usage = `Scatter lets one saga send many requests and gather as many replies, in several designs and with both
stores, and prints what that costs the saga and the other messages of its endpoint.

  cd bench && go run ./scatter [flags]

The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries.
The exit code is 0 when every run came to the right sum and no message died, 1 otherwise, and 2 for wrong flags.

Flags:
`

const appendDesign = "append"

var allDesigns = []string{"flat", "tree", "chunks", "sequential", appendDesign}

// settings are the flags.
type settings struct {
	requests, workers, rate int
	bytes                   int
	designs, stores         []string
	long                    lengths
	full                    bool
}

// lengths are how long things take.
type lengths struct{ quiet, lasts, within time.Duration }

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

// start is the program. It returns the exit code.
func start(args []string, out, complaints io.Writer) int {
	var design, store string
	s := settings{}
	return demo.Program{
		Name: "scatter", Usage: usage,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&s.requests, "requests", 1000, "how `many` requests one scatter sends, at most 100000")
			f.IntVar(&s.bytes, "bytes", 0, "how many `bytes` of text each reply has, which are kept: by the saga, or, "+
				"in the append design, in rows")
			f.IntVar(&s.workers, "workers", 2, "how many `servers` host the sagas, at most 8")
			f.StringVar(&design, "design", "all", "`flat`, tree, chunks, sequential, append, several of them with "+
				"commas, or all")
			f.StringVar(&store, "store", "both", "`optimistic`, pessimistic or both")
			f.IntVar(&s.rate, "unrelated", 100, "how many unrelated messages are sent a `second`")
			f.DurationVar(&s.long.quiet, "quiet", 5*time.Second,
				"how long unrelated messages are measured in quiet, alternating with the load")
			f.DurationVar(&s.long.lasts, "for", 5*time.Second,
				"how long scatters are measured, alternating with the quiet; the last one is finished")
			f.DurationVar(&s.long.within, "within", 2*time.Minute, "how long one scatter may take")
			f.BoolVar(&s.full, "full", false, "hold the replies back until all of them wait, and measure how fast "+
				"they are gathered then, without unrelated messages; for flat")
		},
		Check: func() error {
			s.designs, s.stores = strings.Split(design, ","), []string{store}
			if design == "all" {
				s.designs = allDesigns
			}
			if store == "both" {
				s.stores = []string{"optimistic", "pessimistic"}
			}
			return s.check()
		},
		Run: func(ctx context.Context) error { return play(ctx, s, out) },
	}.Start(args, out, complaints)
}

func (s settings) check() error {
	switch {
	case s.requests < 1 || s.requests > 100_000:
		return fmt.Errorf("-requests %d: want 1 to 100000", s.requests)
	case s.bytes < 0 || s.bytes > 900_000/s.requests:
		return fmt.Errorf("-bytes %d: want 0 to %d: the state of a saga has at most 1 MiB", s.bytes, 900_000/s.requests)
	case s.workers < 1 || s.workers > 8:
		return fmt.Errorf("-workers %d: want 1 to 8", s.workers)
	case s.rate < 1 || s.rate > 1000:
		return fmt.Errorf("-unrelated %d: want 1 to 1000", s.rate)
	case s.long.quiet <= 0 || s.long.lasts < 0 || s.long.within <= 0:
		return errors.New("-quiet and -within want more than 0, and -for 0 or more")
	}
	for _, store := range s.stores {
		if _, ok := storeOf[store]; !ok {
			return fmt.Errorf("-store %q: want optimistic, pessimistic or both", store)
		}
	}
	for _, d := range s.designs {
		switch {
		case s.bytes > 0 && d != "flat" && d != appendDesign:
			return fmt.Errorf("-bytes with -design %s: want flat or append", d)
		case !slices.Contains(allDesigns, d):
			return fmt.Errorf("-design %q: want some of %s, or all", d, strings.Join(allDesigns, ", "))
		case s.full && d != "flat":
			return fmt.Errorf("-full with -design %s: want flat, where all requests are sent at once and all "+
				"replies are for one saga", d)
		}
	}
	return nil
}

// play runs every design with every store and prints the results.
func play(ctx context.Context, s settings, out io.Writer) error {
	return demo.WithDatabase(ctx, "scatter", "", func(d *demo.Database) error {
		return playAll(ctx, s, d, out)
	})
}

func playAll(ctx context.Context, s settings, d *demo.Database, out io.Writer) error {
	var lines []line
	runs := 0
	for _, design := range s.designs {
		for _, store := range s.stores {
			name := store
			if design == appendDesign { // its saga is hardly ever written, so the store does not matter
				name = "-"
			}
			r := &round{settings: s, pool: d.Pool, design: design, store: storeOf[store],
				schema: d.Own + "_" + design + "_" + store,
				line:   line{design: design, store: name, requests: s.requests}}
			if err := r.play(ctx); err != nil {
				return err
			}
			lines, runs = append(lines, r.line), runs+len(r.runs)
			_, _ = fmt.Fprintf(out, "%s, %s: %d scatters of %d requests, %s each\n", design, name, r.line.scatters,
				s.requests, milliseconds(r.line.each()))
			if name == "-" {
				break
			}
		}
	}
	_, _ = fmt.Fprintln(out)
	_, _ = fmt.Fprintf(out, "runs=%d wrong=0: every reply was counted once\n", runs)
	return printTable(out, lines)
}

var storeOf = map[string]saga.Store{"optimistic": saga.Optimistic, "pessimistic": saga.Pessimistic}
