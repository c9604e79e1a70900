package main

import (
	"cmp"
	"fmt"
	"slices"
)

// Ratio compares two peers on a workload or a variant of one.
type Ratio struct {
	Workload string  `json:"workload"`
	Above    string  `json:"above"`
	Below    string  `json:"below"`
	Value    float64 `json:"value"`
}

func (r Ratio) String() string {
	return fmt.Sprintf("RATIO %s %s/%s %.3g", r.Workload, r.Above, r.Below, r.Value)
}

// ratios compares every pair of peers on every workload both of them ran.
func ratios(summaries []Summary) []Ratio {
	var all []Ratio
	for _, peer := range order {
		all = append(all, flatness(summaries, Backlog, peer)...)
		all = append(all, flatness(summaries, Timers, peer)...)
	}
	for i, above := range order {
		for _, below := range order[i+1:] {
			all = append(all, throughput(pairs(summaries, Step, above, below))...)
			all = append(all, throughput(pairs(summaries, Hot, above, below))...)
			all = append(all, throughput(pairs(summaries, History, above, below))...)
			all = append(all, throughput(pairs(summaries, HistoryHot, above, below))...)
			all = append(all, throughput(pairs(summaries, Traced, above, below))...)
			all = append(all, throughput(pairs(summaries, Viewed, above, below))...)
			all = append(all, throughput(pairs(summaries, Leased, above, below))...)
			all = append(all, throughput(pairs(summaries, Inbox, above, below))...)
			all = append(all, bySize(pairs(summaries, Backlog, above, below))...)
			all = append(all, bySize(pairs(summaries, Timers, above, below))...)
			all = append(all, latency(pairs(summaries, Latency, above, below))...)
		}
	}
	return all
}

// pair is the same work done by two peers.
type pair struct{ above, below Summary }

// pairs matches like with like: the same number of processes and of waiting messages, and the same store unless a peer
// has no store.
func pairs(summaries []Summary, workload, above, below string) []pair {
	var all []pair
	for _, a := range summaries {
		for _, b := range summaries {
			peers := a.Peer == above && b.Peer == below
			work := a.Workload == workload && b.Workload == workload && a.Processes == b.Processes && a.Size == b.Size
			store := a.Store == b.Store || a.Store == "" || b.Store == ""
			if peers && work && store {
				all = append(all, pair{a, b})
			}
		}
	}
	return all
}

func (p pair) ratio(workload string, value float64) Ratio {
	return Ratio{Workload: workload, Above: p.above.Peer, Below: p.below.Peer, Value: value}
}

// variant returns the name of the case that the two share, with the store of the peer that has a store.
func (p pair) variant() string {
	c := p.above.Case
	c.Store = cmp.Or(p.above.Store, p.below.Store)
	return c.Name()
}

// throughput has a line for each variant, and one for the whole workload: its worst variant.
func throughput(pairs []pair) []Ratio {
	if len(pairs) == 0 {
		return nil
	}
	var lines []Ratio
	for _, p := range pairs {
		lines = append(lines, p.ratio(p.variant(), p.above.Rate/p.below.Rate))
	}
	worst := slices.MinFunc(lines, func(a, b Ratio) int { return cmp.Compare(a.Value, b.Value) })
	worst.Workload = pairs[0].above.Workload
	return append(lines, worst)
}

// bySize returns a line for each number of waiting messages. A line for the worst would have no meaning.
func bySize(pairs []pair) []Ratio {
	var lines []Ratio
	for _, p := range pairs {
		lines = append(lines, p.ratio(p.variant(), p.above.Rate/p.below.Rate))
	}
	return lines
}

// flatness compares a peer with itself: each number of waiting messages with the smallest one.
func flatness(summaries []Summary, workload, peer string) []Ratio {
	var least *Summary
	var lines []Ratio
	for i, s := range summaries {
		switch {
		case s.Workload != workload || s.Peer != peer:
		case least == nil:
			least = &summaries[i]
		default:
			lines = append(lines, Ratio{Workload: workload + " " + peer, Above: sizeName(s.Size),
				Below: sizeName(least.Size),
				Value: s.Rate / least.Rate})
		}
	}
	return lines
}

// latency has a line for the median and one for the slow end. Here less is better.
func latency(pairs []pair) []Ratio {
	var lines []Ratio
	for _, p := range pairs {
		lines = append(lines,
			p.ratio("latency-p50", p.above.P50/p.below.P50),
			p.ratio("latency-p99", p.above.P99/p.below.P99))
	}
	return lines
}

// The reference machine has 2 processors and Postgres on the same box. A peer slower than this there
// is badly written or badly run, and beating it proves nothing.
var reference = map[string]float64{
	"ceiling":      45_000,
	"single":       3_500,
	"watermillsql": 2_800,
	"river":        1_200,
}

// weakPeers fails when a peer's step is slower than the reference machine must have it.
func weakPeers(summaries []Summary) error {
	for _, s := range summaries {
		if least := reference[s.Peer]; s.Workload == Step && s.Rate < least {
			return fmt.Errorf("weak peer: %s does %.0f messages a second on %s, the reference machine does at "+
				"least %.0f"+
				" (-reference=false on other machines)", s.Peer, s.Rate, s.Name, least)
		}
	}
	return nil
}
