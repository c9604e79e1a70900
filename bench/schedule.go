package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Schedule is the workload that the scheduler has for itself: no peer stores schedules in the database and sends their
// messages in the transaction that records it. Its three parts are workloads to the harness.
const (
	Schedule         = "schedule"
	ScheduleRate     = "schedule-rate"
	ScheduleLateness = "schedule-lateness"
	ScheduleStored   = "schedule-stored"
)

const (
	firingsPerSecond = 100                    // of the lateness
	hundred          = 100                    // manifests that are due at a time, of those stored
	batchGap         = 500 * time.Millisecond // between two hundreds
)

// scheduleSizes are the numbers of a full run and of -quick.
type scheduleSizes struct {
	rate    int   // firings that are all due at once
	seconds int   // of lateness; the first warms up
	stored  []int // manifests
	batches int   // hundreds of them that come due
}

func (o options) scheduleSizes() scheduleSizes {
	s := scheduleSizes{rate: 20_000, seconds: 21, stored: []int{10_000, 1_000_000}, batches: 20}
	if o.quick {
		s = scheduleSizes{rate: 4_000, seconds: 6, stored: []int{10_000, 100_000}, batches: 8}
	}
	if o.n > 0 {
		s.rate = o.n
	}
	if o.size > 0 {
		s.stored = slices.DeleteFunc(s.stored, func(n int) bool { return n > o.size })
	}
	return s
}

// cases lists them in the order of the table.
func (s scheduleSizes) cases() []Case {
	var all []Case
	for _, processes := range []int{1, 2, 4} {
		all = append(all, Case{Workload: ScheduleRate, Processes: processes, N: s.rate})
	}
	all = append(all, Case{Workload: ScheduleLateness, Processes: 1, N: s.seconds * firingsPerSecond})
	for _, stored := range s.stored {
		all = append(all, Case{Workload: ScheduleStored, Processes: 1, Size: stored, N: s.batches * hundred})
	}
	for i := range all {
		all[i].Peer = Schedule
	}
	return all
}

// withoutSchedule takes the workload out of -run, since the others choose their cases by peer.
func withoutSchedule(run string) (rest string, wanted bool) {
	names := strings.Split(run, ",")
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == Schedule })
	return strings.Join(others, ","), len(others) < len(names)
}

// schedule measures all of it. The stored manifests are filled in once and serve every round, and their cases take
// turns.
func (h *harness) schedule(ctx context.Context, o options) ([]ScheduleResult, error) {
	cases := o.scheduleSizes().cases()
	defer h.dropSchedule(ctx, cases)
	if err := h.storeManifests(ctx, cases); err != nil {
		return nil, err
	}
	before, err := deadlocks(ctx, h.db)
	if err != nil {
		return nil, err
	}
	var all []ScheduleResult
	for round := range o.rounds {
		for i := range cases {
			c := cases[(i+round)%len(cases)]
			result, err := h.fire(ctx, c)
			if err == nil {
				err = h.noDeadlocks(ctx, before)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", scheduleName(c), err)
			}
			fmt.Fprintf(h.log, "round %d/%d  %-22s %s\n", round+1, o.rounds, scheduleName(c), result.figure())
			all = append(all, result)
		}
	}
	return all, nil
}

// fire prepares, measures and counts one case.
func (h *harness) fire(ctx context.Context, c Case) (ScheduleResult, error) {
	var err error
	if c.Workload == ScheduleStored {
		err = h.settleStored(ctx, c)
	} else {
		err = h.prepare(ctx, c)
	}
	if err != nil {
		return ScheduleResult{}, err
	}
	measured, err := h.measure(ctx, c)
	if err != nil {
		return ScheduleResult{}, err
	}
	result := ScheduleResult{Result: measured}
	if c.Workload == ScheduleLateness {
		err = h.readLateness(ctx, c, &result)
	} else if err = h.checkSent(ctx, c); err == nil && c.Workload == ScheduleStored {
		err = h.readBatches(ctx, c, &result)
	}
	return result, err
}

// storeManifests fills the tables of schedule-stored in the server.
func (h *harness) storeManifests(ctx context.Context, cases []Case) error {
	for _, c := range cases {
		if c.Workload != ScheduleStored {
			continue
		}
		began := time.Now()
		if err := h.prepare(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", scheduleName(c), err)
		}
		fmt.Fprintf(h.log, "prepared   %-22s %.0f s\n", scheduleName(c), time.Since(began).Seconds())
	}
	return nil
}

// settleStored undoes the firings of a run, and vacuums the table as the autovacuum would.
func (h *harness) settleStored(ctx context.Context, c Case) error {
	sql := statements(scheduleSQL, c.Schema())
	for _, statement := range []string{sql["settle"], sql["empty"]} {
		if _, err := h.db.Exec(ctx, statement); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
	}
	for _, table := range []string{"manifest", "run", "run_attempt"} {
		if _, err := h.db.Exec(ctx, "VACUUM (ANALYZE) "+pgx.Identifier{c.Schema(), table}.Sanitize()); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	_, err := h.db.Exec(ctx, "CHECKPOINT")
	return err
}

func (h *harness) dropSchedule(ctx context.Context, cases []Case) {
	ctx = context.WithoutCancel(ctx)
	for _, c := range cases {
		if err := h.drop(ctx, c); err != nil {
			fmt.Fprintln(h.log, "drop:", err)
		}
	}
}

// checkSent counts: a message in the queue for each firing, of as many manifests, and no run beside them.
func (h *harness) checkSent(ctx context.Context, c Case) error {
	var messages, manifests, runs int
	row := h.db.QueryRow(ctx, statements(scheduleSQL, c.Schema())["sent"])
	if err := row.Scan(&messages, &manifests, &runs); err != nil {
		return fmt.Errorf("count effects: %w", err)
	}
	if messages != c.N || manifests != c.N || runs != c.N {
		return fmt.Errorf("wrong effects: %d messages, of %d manifests, %d runs; want %d of each", messages, manifests,
			runs, c.N)
	}
	return nil
}

func scheduleName(c Case) string {
	switch c.Workload {
	case ScheduleRate:
		return fmt.Sprintf("%s-%dp", c.Workload, c.Processes)
	case ScheduleStored:
		return c.Workload + "-" + sizeName(c.Size)
	}
	return c.Workload
}
