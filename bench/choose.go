package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// messages is the full number of messages of a workload, and that of -quick.
var messages = map[string]struct{ full, quick int }{
	Step:    {200_000, 40_000},
	Hot:     {200_000, 40_000},
	Latency: {2_000, 500},
	Backlog: {30_000, 10_000},
	Timers:  {30_000, 10_000},
	Leased:  {200_000, 40_000},
	Inbox:   {200_000, 40_000},
	Relay:   {200_000, 40_000},
}

// choose lists the cases the flags ask for, each with its number of messages.
func choose(o options) ([]Case, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var cases []Case
	for workload := range strings.SplitSeq(o.run, ",") {
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
		return nil, errors.New("no peer does what -run and -peers ask for")
	}
	return cases, nil
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
			"leased, inbox, relay and schedule", workload)
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
