package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
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
		"backlog, timers, leased, inbox, relay, schedule")
	flag.StringVar(&o.peers, "peers", "", "peers, separated by commas; empty is all")
	flag.IntVar(&o.n, "n", 0, "messages per run of the fastest peer, slower ones get their share; 0 is the "+
		"workload's own number")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each case runs; the median counts")
	flag.IntVar(&o.size, "size", 0, "leave out the cases of backlog, timers and schedule with more than this many "+
		"messages waiting or manifests stored; 0 is none")
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

// work is what the flags ask for: cases of peers, and whether the scheduler is measured.
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

// startProfile begins a profile if there is a file for it; call what it returns at the end.
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
