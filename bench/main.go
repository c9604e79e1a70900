package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"

	"github.com/edda-go/edda/bench/gallery"
)

// options are the flags.
type options struct {
	run       string
	peers     string
	n         int
	rounds    int
	size      int
	quick     bool
	json      string
	profile   string
	reference bool
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.run, "run", "step,hot,latency", "workloads, separated by commas: step, hot, latency, "+
		"backlog, timers, leased, inbox, relay, history, traced, viewed, schedule")
	flag.StringVar(&o.peers, "peers", "", "peers, separated by commas; empty is all")
	flag.IntVar(&o.n, "n", 0, "messages per run of the fastest peer, slower ones get their share; 0 is the "+
		"workload's own number")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each case runs; the median counts")
	flag.IntVar(&o.size, "size", 0, "leave out the cases of backlog, timers and schedule with more than this many "+
		"messages waiting or manifests stored")
	flag.BoolVar(&o.quick, "quick", false, "fewer messages: step and hot in less than a minute")
	flag.StringVar(&o.json, "json", "", "also write everything measured to this file")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a processor profile of this process to this file")
	flag.BoolVar(&o.reference, "reference", runtime.NumCPU() == 2,
		"fail when a peer is slower on step than the reference machine must have it; true on 2 processors")
	flag.Parse()
	return o
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context) error {
	if job := os.Getenv(childVariable); job != "" {
		return runChild(ctx, job)
	}
	if os.Getenv(gallery.Variable) != "" {
		return gallery.Run(ctx)
	}
	return bench(ctx, parseFlags(), os.Stdout)
}

// bench is the whole program: choose, run, print, judge.
func bench(ctx context.Context, o options, out io.Writer) (err error) {
	cases, schedule, err := o.work()
	if err != nil {
		return err
	}
	server, db, err := startServer(ctx, os.Stderr, schedule)
	if server != nil {
		defer func() { err = errors.Join(err, server.Stop()) }()
	}
	if err != nil {
		return err
	}
	defer db.Close()
	stopProfile, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	h := &harness{dsn: server.DSN(), db: db, log: os.Stderr}
	report, err := h.report(ctx, o, cases, schedule)
	stopProfile()
	if err != nil {
		return err
	}
	if err := report.print(out); err != nil {
		return err
	}
	if o.json != "" {
		if err := report.write(o.json); err != nil {
			return err
		}
	}
	faults := brokenDemands(report.Schedule, report.Ratios)
	if o.reference {
		faults = errors.Join(faults, weakPeers(report.Summaries))
	}
	return faults
}

// work returns the work that the flags select: cases of peers, and whether the scheduler is measured.
func (o options) work() (cases []Case, schedule bool, err error) {
	rest, schedule := withoutSchedule(o.run)
	if schedule && rest == "" {
		return nil, true, o.check()
	}
	o.run = rest
	cases, err = choose(o)
	return cases, schedule, err
}

// report measures everything. No figure is had of anything when one effect is wrong.
func (h *harness) report(ctx context.Context, o options, cases []Case, schedule bool) (r Report, err error) {
	r.CPUs = runtime.NumCPU()
	if r.Server, err = describe(ctx, h.db); err != nil {
		return r, err
	}
	if r.Results, err = h.rounds(ctx, cases, o.rounds); err != nil {
		return r, err
	}
	r.Summaries = summarize(cases, r.Results)
	r.Ratios = ratios(r.Summaries)
	if !schedule {
		return r, nil
	}
	if r.ScheduleResults, err = h.schedule(ctx, o); err != nil {
		return r, err
	}
	r.Schedule = summarizeSchedule(o, r.ScheduleResults)
	r.Ratios = append(r.Ratios, scheduleRatios(r.Schedule)...)
	return r, nil
}

// startProfile begins a profile if there is a file for it; call stop at the end.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, pprof.StartCPUProfile(f)
}

// messages is the full number of messages of a workload, and that of -quick.
var messages = map[string]struct{ full, quick int }{
	Step:       {200_000, 40_000},
	Hot:        {200_000, 40_000},
	History:    {200_000, 40_000},
	HistoryHot: {200_000, 40_000},
	Traced:     {200_000, 40_000},
	Viewed:     {200_000, 40_000},
	Latency:    {2_000, 500},
	Backlog:    {30_000, 10_000},
	Timers:     {30_000, 10_000},
	Leased:     {200_000, 40_000},
	Inbox:      {200_000, 40_000},
	Relay:      {200_000, 40_000},
}

// choose lists the cases that the flags select, each with its number of messages.
func choose(o options) ([]Case, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var cases []Case
	for workload := range workloads(o.run) {
		n, err := size(workload, o)
		if err != nil {
			return nil, err
		}
		for _, c := range registered(workload, o.peers) {
			if c.Size > o.largest() {
				continue
			}
			c.N = max(int(float64(n)*c.Share), 1)
			cases = append(cases, c)
		}
	}
	if len(cases) == 0 {
		return nil, errors.New("no case matches -run and -peers")
	}
	return cases, nil
}

// workloads returns the workloads that -run selects.
func workloads(asked string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for workload := range strings.SplitSeq(asked, ",") {
			if !yield(workload) || workload == History && !yield(HistoryHot) {
				return
			}
		}
	}
}

func (o options) check() error {
	if o.rounds < 1 || o.n < 0 {
		return errors.New("-rounds must be at least 1, and -n not negative")
	}
	return nil
}

// size is the number of messages a full share of the workload has.
func size(workload string, o options) (int, error) {
	numbers, known := messages[workload]
	switch {
	case !known:
		return 0, fmt.Errorf("-run: there is no workload %q; there are step, hot, latency, backlog, timers, "+
			"leased, inbox, relay, history, traced, viewed and schedule", workload)
	case o.n > 0:
		return o.n, nil
	case o.quick:
		return numbers.quick, nil
	}
	return numbers.full, nil
}

// largest is the most messages that may wait behind the measured ones.
func (o options) largest() int {
	switch {
	case o.size > 0:
		return o.size
	case o.quick:
		return quickSize
	}
	return math.MaxInt
}

// registered lists the cases of a workload, of the wanted peers or of all.
func registered(workload, wanted string) []Case {
	var cases []Case
	for _, name := range order {
		if wanted != "" && !slices.Contains(strings.Split(wanted, ","), name) {
			continue
		}
		for _, c := range peers[name].cases {
			if c.Workload == workload {
				cases = append(cases, c)
			}
		}
	}
	return cases
}
