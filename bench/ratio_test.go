package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheWorkloadsRatioIsItsWorstVariant(t *testing.T) {
	summary := func(peer, workload, store string, processes int, rate float64) Summary {
		c := Case{Peer: peer, Workload: workload, Store: store, Processes: processes}
		return Summary{Case: c, Name: c.Name(), Rate: rate}
	}
	got := ratios([]Summary{
		summary("ceiling", Step, "", 1, 100),
		summary("ceiling", Hot, "", 1, 100),
		summary("ceiling", Hot, "", 2, 200),
		summary("single", Step, Optimistic, 1, 5),
		summary("edda", Step, Optimistic, 1, 80),
		summary("edda", Step, Pessimistic, 1, 90),
		summary("edda", Hot, Pessimistic, 1, 70),
		summary("edda", Hot, Pessimistic, 2, 100),
	})
	want := `
RATIO step-optimistic edda/ceiling 0.8
RATIO step-pessimistic edda/ceiling 0.9
RATIO step edda/ceiling 0.8
RATIO hot-pessimistic-1p edda/ceiling 0.7
RATIO hot-pessimistic-2p edda/ceiling 0.5
RATIO hot edda/ceiling 0.5
RATIO step-optimistic edda/single 16
RATIO step edda/single 16
RATIO step-optimistic ceiling/single 20
RATIO step ceiling/single 20`
	if lines := lines(got); lines != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant%s", lines, want)
	}
}

func TestLatencyHasTwoRatios(t *testing.T) {
	got := ratios([]Summary{
		{Case: Case{Peer: "floor", Workload: Latency, Processes: 1}, P50: 0.5, P99: 1},
		{Case: Case{Peer: "edda", Workload: Latency, Processes: 1}, P50: 1, P99: 4},
	})
	want := "RATIO latency-p50 edda/floor 2\nRATIO latency-p99 edda/floor 4"
	if lines := lines(got); lines != want {
		t.Errorf("got\n%s\nwant\n%s", lines, want)
	}
}

func TestWaitingMessagesAreComparedWithTheFewest(t *testing.T) {
	summary := func(peer, workload string, size int, rate float64) Summary {
		return Summary{Case: Case{Peer: peer, Workload: workload, Size: size, Processes: 1}, Rate: rate}
	}
	got := ratios([]Summary{
		summary("edda", Backlog, 1e4, 100),
		summary("edda", Backlog, 1e7, 90),
		summary("ceiling", Backlog, 1e7, 180),
		summary("edda", Timers, 0, 50),
		summary("edda", Timers, 1e6, 49),
	})
	want := `
RATIO backlog edda 1e7/1e4 0.9
RATIO timers edda 1e6/0 0.98
RATIO backlog-1e7 edda/ceiling 0.5`
	if lines := lines(got); lines != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant%s", lines, want)
	}
}

func TestSizesAreNamedByTheirPowerOfTen(t *testing.T) {
	for size, want := range map[int]string{0: "0", 1: "1e0", 50: "50", 10_000: "1e4", 30_000: "30000",
		10_000_000: "1e7"} {
		if got := sizeName(size); got != want {
			t.Errorf("%d is %s, want %s", size, got, want)
		}
	}
}

func lines(all []Ratio) string {
	var text []string
	for _, r := range all {
		text = append(text, r.String())
	}
	return strings.Join(text, "\n")
}

func TestWeakPeersAreNamed(t *testing.T) {
	weak := []Summary{{Case: Case{Peer: "single", Workload: Step}, Rate: 3_499}}
	if err := weakPeers(weak); err == nil || !strings.Contains(err.Error(), "single") {
		t.Errorf("got %v, want an error that names single", err)
	}
	strong := []Summary{{Case: Case{Peer: "ceiling", Workload: Step}, Rate: 45_000},
		{Case: Case{Peer: "single", Workload: Hot}, Rate: 1}}
	if err := weakPeers(strong); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestPercentileIsARankThatOccurred(t *testing.T) {
	var latencies []time.Duration
	for ms := range 200 {
		latencies = append(latencies, time.Duration(ms+1)*time.Millisecond)
	}
	slices.Reverse(latencies)
	if p50, p99 := percentile(latencies, 50), percentile(latencies, 99); p50 != 100 || p99 != 198 {
		t.Errorf("got p50 %v, p99 %v; want 100 and 198", p50, p99)
	}
}
