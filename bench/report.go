package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Summary is the median of all rounds of one case.
type Summary struct {
	Case
	Name      string  `json:"name"`
	Rate      float64 `json:"rate"`
	Slowest   float64 `json:"slowest"`
	Fastest   float64 `json:"fastest"`
	ClientCPU float64 `json:"client_cpu"`
	ServerCPU float64 `json:"server_cpu"`
	WAL       float64 `json:"wal"`
	P50       float64 `json:"p50_ms,omitempty"`
	P99       float64 `json:"p99_ms,omitempty"`
}

// summarize takes the median of each figure by itself, in the order of the cases.
func summarize(cases []Case, results []Result) []Summary {
	var all []Summary
	for _, c := range cases {
		figures := func(of func(Result) float64) []float64 {
			var values []float64
			for _, r := range results {
				if r.Case == c {
					values = append(values, of(r))
				}
			}
			return values
		}
		rates := figures(func(r Result) float64 { return r.Rate })
		all = append(all, Summary{
			Case:      c,
			Name:      c.Name(),
			Rate:      median(rates),
			Slowest:   slices.Min(rates),
			Fastest:   slices.Max(rates),
			ClientCPU: median(figures(func(r Result) float64 { return r.ClientCPU })),
			ServerCPU: median(figures(func(r Result) float64 { return r.ServerCPU })),
			WAL:       median(figures(func(r Result) float64 { return r.WAL })),
			P50:       median(figures(func(r Result) float64 { return r.P50 })),
			P99:       median(figures(func(r Result) float64 { return r.P99 })),
		})
	}
	return all
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// percentile is in milliseconds: the smallest latency that p of 100 messages do not exceed.
func percentile(latencies []time.Duration, p int) float64 {
	if len(latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(latencies))
	rank := int(math.Ceil(float64(len(sorted)) * float64(p) / 100))
	return float64(sorted[rank-1].Microseconds()) / 1000
}

// figure is the one number a reader waits for while the rounds go by.
func (r Result) figure() string {
	if r.Workload == Latency {
		return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", r.P50, r.P99)
	}
	text := fmt.Sprintf("%.0f msg/s, cpu %.1f + %.1f µs/msg", r.Rate, r.ClientCPU, r.ServerCPU)
	if r.Workload == Relay {
		text += fmt.Sprintf(", first tenth %.0f msg/s, last %.0f", r.First, r.Last)
	}
	return text
}

// printTable prints one line a case.
func printTable(out io.Writer, summaries []Summary) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tpeer\tmessages\tmsg/s\tslowest\tfastest\tclient µs\tserver µs\tWAL B\tp50 ms\tp99 ms\t")
	for _, s := range summaries {
		if s.Workload == Latency {
			fmt.Fprintf(t, "%s\t%s\t%d\t\t\t\t\t\t\t%.2f\t%.2f\t\n", s.Name, s.Peer, s.N, s.P50, s.P99)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t\t\t\n",
			s.Name, s.Peer, s.N, s.Rate, s.Slowest, s.Fastest, s.ClientCPU, s.ServerCPU, s.WAL)
	}
	return t.Flush()
}

// Report is the output of -json.
type Report struct {
	Server    map[string]string `json:"server"`
	CPUs      int               `json:"cpus"`
	Summaries []Summary         `json:"summaries"`
	Ratios    []Ratio           `json:"ratios"`
	Results   []Result          `json:"results"`

	Schedule        []ScheduleSummary `json:"schedule,omitempty"`
	ScheduleResults []ScheduleResult  `json:"schedule_results,omitempty"`
}

func (r Report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func (r Report) print(out io.Writer) error {
	fmt.Fprintf(out, "PostgreSQL %s, synchronous_commit %s, shared_buffers %s, %d processors\n\n",
		r.Server["server_version"],
		r.Server["synchronous_commit"], r.Server["shared_buffers"], r.CPUs)
	if len(r.Summaries) > 0 {
		if err := printTable(out, r.Summaries); err != nil {
			return err
		}
	}
	if len(r.Schedule) > 0 {
		if err := printSchedule(out, r.Schedule); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	for _, ratio := range r.Ratios {
		fmt.Fprintln(out, ratio)
	}
	_, err := fmt.Fprintln(out, "deadlocks 0")
	return err
}
