package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// The limits of the scheduler: the program fails if one is exceeded.
const (
	schedulePoll   = time.Second // the default of Options.Evaluate and Options.Dispatch
	mostLateness   = schedulePoll + 250*time.Millisecond
	mostStoredCost = 2.0 // the largest number of stored manifests, as a multiple of the smallest
)

// ScheduleResult is one run of one part. P50 and P99 are of the lateness at the handler's begin.
type ScheduleResult struct {
	Result
	PutP50 float64 `json:"put_p50_ms,omitempty"` // of the lateness at the commit that put the message on the bus
	PutP99 float64 `json:"put_p99_ms,omitempty"`
	// from the moment that a hundred is due to the last commit of its messages, the median
	Batch float64 `json:"batch_ms,omitempty"`
}

// ScheduleSummary is the medians of the rounds.
type ScheduleSummary struct {
	Summary
	PutP50 float64 `json:"put_p50_ms,omitempty"`
	PutP99 float64 `json:"put_p99_ms,omitempty"`
	Batch  float64 `json:"batch_ms,omitempty"`
}

// readLateness first counts: every due time was handled once.
func (h *harness) readLateness(ctx context.Context, c Case, r *ScheduleResult) error {
	sql := statements(scheduleSQL, c.Schema())
	var begin time.Time
	if err := h.db.QueryRow(ctx, "SELECT min(due) FROM "+pgx.Identifier{c.Schema(), "run"}.Sanitize()).Scan(
		&begin); err != nil {
		return fmt.Errorf("read the first due time: %w", err)
	}
	end := begin.Add(time.Duration(c.N/firingsPerSecond) * time.Second)
	var all, distinct int
	if err := h.db.QueryRow(ctx, sql["handled"], end).Scan(&all, &distinct); err != nil {
		return fmt.Errorf("count effects: %w", err)
	}
	if all != c.N || distinct != c.N {
		return fmt.Errorf("wrong effects: %d handlings of %d due times that have succeeded, want %d of each", all,
			distinct, c.N)
	}
	rows, err := h.db.Query(ctx, sql["lateness"], begin.Add(time.Second), end)
	if err != nil {
		return fmt.Errorf("read the lateness: %w", err)
	}
	var begun, put []time.Duration
	var b, p int64
	_, err = pgx.ForEachRow(rows, []any{&b, &p}, func() error {
		begun, put = append(begun, time.Duration(b)*time.Microsecond), append(put, time.Duration(p)*time.Microsecond)
		return nil
	})
	r.P50, r.P99, r.PutP50, r.PutP99 = percentile(begun, 50), percentile(begun, 99), percentile(put, 50),
		percentile(put, 99)
	return err
}

func (h *harness) readBatches(ctx context.Context, c Case, r *ScheduleResult) error {
	rows, err := h.db.Query(ctx, statements(scheduleSQL, c.Schema())["batches"])
	if err != nil {
		return fmt.Errorf("read the batches: %w", err)
	}
	took, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("read the batches: %w", err)
	}
	if len(took) != c.N/hundred {
		return fmt.Errorf("wrong effects: %d batches came due, want %d", len(took), c.N/hundred)
	}
	var all []float64
	for _, us := range took {
		all = append(all, float64(us)/1000)
	}
	r.Batch = median(all)
	return nil
}

func (r ScheduleResult) figure() string {
	cpu := fmt.Sprintf("cpu %.1f + %.1f µs/firing", r.ClientCPU, r.ServerCPU)
	switch r.Workload {
	case ScheduleLateness:
		return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, on the bus %.2f and %.2f, %s", r.P50, r.P99, r.PutP50, r.PutP99,
			cpu)
	case ScheduleStored:
		return fmt.Sprintf("100 in %.2f ms, %s", r.Batch, cpu)
	}
	return fmt.Sprintf("%.0f firings/s, %s", r.Rate, cpu)
}

// summarizeSchedule takes the median of each figure by itself, in the order of the cases.
func summarizeSchedule(o options, results []ScheduleResult) []ScheduleSummary {
	var all []ScheduleSummary
	for _, c := range o.scheduleSizes().cases() {
		figures := func(of func(ScheduleResult) float64) []float64 {
			var values []float64
			for _, r := range results {
				if r.Case == c {
					values = append(values, of(r))
				}
			}
			return values
		}
		var plain []Result
		for _, r := range results {
			plain = append(plain, r.Result)
		}
		s := ScheduleSummary{
			Summary: summarize([]Case{c}, plain)[0],
			PutP50:  median(figures(func(r ScheduleResult) float64 { return r.PutP50 })),
			PutP99:  median(figures(func(r ScheduleResult) float64 { return r.PutP99 })),
			Batch:   median(figures(func(r ScheduleResult) float64 { return r.Batch })),
		}
		s.Name = scheduleName(c)
		all = append(all, s)
	}
	return all
}

// scheduleRatios compares the scheduler with itself: more dispatchers with one, and the most stored manifests with the
// fewest.
func scheduleRatios(summaries []ScheduleSummary) []Ratio {
	var lines []Ratio
	one := slices.IndexFunc(summaries, func(s ScheduleSummary) bool { return s.Workload == ScheduleRate })
	few := slices.IndexFunc(summaries, func(s ScheduleSummary) bool { return s.Workload == ScheduleStored })
	for i, s := range summaries {
		switch {
		case s.Workload == ScheduleRate && i != one:
			lines = append(lines, Ratio{Workload: s.Workload, Above: fmt.Sprintf("%dp", s.Processes), Below: "1p",
				Value: s.Rate / summaries[one].Rate})
		case s.Workload == ScheduleStored && i != few:
			r := Ratio{Workload: storedTime, Above: sizeName(s.Size), Below: sizeName(summaries[few].Size),
				Value: s.Batch / summaries[few].Batch}
			lines = append(lines, r)
			r.Workload = storedCPU
			r.Value = (s.ClientCPU + s.ServerCPU) / (summaries[few].ClientCPU + summaries[few].ServerCPU)
			lines = append(lines, r)
		}
	}
	return lines
}

const (
	storedTime = ScheduleStored + "-time"
	storedCPU  = ScheduleStored + "-cpu"
)

// brokenDemands returns an error for each limit that the scheduler exceeded.
func brokenDemands(summaries []ScheduleSummary, ratios []Ratio) (faults error) {
	most := float64(mostLateness.Milliseconds())
	for _, s := range summaries {
		if late := max(s.P99, s.PutP99); s.Workload == ScheduleLateness && late > most {
			faults = errors.Join(faults, fmt.Errorf("%s: p99 is %.0f ms, at most %.0f are promised", s.Name, late,
				most))
		}
	}
	for _, r := range ratios {
		if (r.Workload == storedTime || r.Workload == storedCPU) && r.Value > mostStoredCost {
			faults = errors.Join(faults, fmt.Errorf("%v, at most %g is promised", r, mostStoredCost))
		}
	}
	return faults
}

// printSchedule prints one line a case.
func printSchedule(out io.Writer, summaries []ScheduleSummary) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tfirings\tfirings/s\tslowest\tfastest\tclient µs\tserver µs\tp50 ms\tp99 ms\ton "+
		"bus p50\ton bus p99\t100 in ms\t")
	for _, s := range summaries {
		rate, late, batch := "\t\t", "\t\t\t", ""
		switch s.Workload {
		case ScheduleRate:
			rate = fmt.Sprintf("%.0f\t%.0f\t%.0f", s.Rate, s.Slowest, s.Fastest)
		case ScheduleLateness:
			late = fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", s.P50, s.P99, s.PutP50, s.PutP99)
		case ScheduleStored:
			batch = fmt.Sprintf("%.2f", s.Batch)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.1f\t%.1f\t%s\t%s\t\n", s.Name, s.N, rate, s.ClientCPU, s.ServerCPU, late, batch)
	}
	return t.Flush()
}
