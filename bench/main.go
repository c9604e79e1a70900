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
	flag.StringVar(&o.run, "run", "step,hot,latency", "workloads, separated by commas: step, hot, latency, backlog, timers, leased")
	flag.StringVar(&o.peers, "peers", "", "peers, separated by commas; empty is all")
	flag.IntVar(&o.n, "n", 0, "messages per run of the fastest peer, slower ones get their share; 0 is the workload's own number")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each case runs; the median counts")
	flag.IntVar(&o.size, "size", 0, "leave out the cases of backlog and timers with more than this many messages waiting; 0 is none")
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
	cases, err := choose(o)
	if err != nil {
		return err
	}
	server, db, err := startServer(ctx, os.Stderr)
	if server != nil {
		defer func() { err = errors.Join(err, server.Stop()) }()
	}
	if err != nil {
		return err
	}
	defer db.Close()
	report := Report{CPUs: runtime.NumCPU()}
	if report.Server, err = describe(ctx, db); err != nil {
		return err
	}
	stopProfile, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	h := &harness{dsn: server.DSN(), db: db, log: os.Stderr}
	report.Results, err = h.rounds(ctx, cases, o.rounds)
	stopProfile()
	if err != nil {
		return err
	}
	report.Summaries = summarize(cases, report.Results)
	report.Ratios = ratios(report.Summaries)
	if err := report.print(out); err != nil {
		return err
	}
	if o.json != "" {
		if err := report.write(o.json); err != nil {
			return err
		}
	}
	if o.reference {
		return weakPeers(report.Summaries)
	}
	return nil
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
