package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The workloads, see README.md.
const (
	Step    = "step"
	Hot     = "hot"
	Latency = "latency"
	Backlog = "backlog"
	Timers  = "timers"
	Leased  = "leased"
)

// The stores of a saga. A peer without the distinction leaves Case.Store empty.
const (
	Optimistic  = "optimistic"
	Pessimistic = "pessimistic"
)

// Case is one measured thing: a peer on a variant of a workload.
// It travels to worker processes as JSON.
type Case struct {
	Peer      string `json:"peer"`
	Workload  string `json:"workload"`
	Store     string `json:"store,omitempty"`
	Processes int    `json:"processes"`
	// Size is how many messages wait behind the measured messages: due ones in backlog, later ones in timers.
	Size int `json:"size,omitempty"`
	// Share is the part of the workload's messages this case gets, so that a slow peer measures as long as a fast one.
	Share float64 `json:"share"`
	// N is the number of messages; the harness sets it.
	N int `json:"n"`
}

// Schema is the case's own schema. The harness drops it before Prepare and after the run.
func (c Case) Schema() string {
	name := "bench_" + strings.ReplaceAll(c.Peer, "-", "_")
	switch {
	case c.Kept():
		name += "_" + c.Workload + "_" + sizeName(c.Size)
	case c.Workload == ScheduleStored:
		name += "_" + sizeName(c.Size)
	}
	return name
}

// Hot reports whether there is only one instance.
func (c Case) Hot() bool { return c.Workload == Hot || c.Workload == HistoryHot }

// Kept reports whether the tables are filled once for all rounds, because to fill them takes longer than a run.
func (c Case) Kept() bool { return c.Workload == Backlog || c.Workload == Timers }

// Name distinguishes the variants of a workload: step, step-optimistic, hot-pessimistic-2p, backlog-1e7.
func (c Case) Name() string {
	name := c.Workload
	if c.Kept() {
		return name + "-" + sizeName(c.Size)
	}
	if c.Store != "" {
		name += "-" + c.Store
	}
	if c.Hot() {
		name += fmt.Sprintf("-%dp", c.Processes)
	}
	return name
}

// sizeName writes the powers of ten as such: 0, 1e4, 1e7.
func sizeName(size int) string {
	digits := strconv.Itoa(size)
	if zeros := strings.TrimLeft(digits[1:], "0"); size > 0 && zeros == "" && digits[0] == '1' {
		return fmt.Sprintf("1e%d", len(digits)-1)
	}
	return digits
}

// Peer is one implementation of the workloads.
type Peer interface {
	// Prepare makes the tables in c.Schema() and fills them: c.Instances() orders and, but for the latency
	// workload and the kept ones, the messages of c.Charges(). It is not measured.
	Prepare(ctx context.Context, db *pgxpool.Pool, c Case) error
	// Work connects, calls w.Start once it is ready, then handles messages until the queue is empty, or in the kept
	// workloads until it has handled w.N.
	// It runs once in each of c.Processes operating-system processes; the clock runs from the
	// moment all of them are ready until the last one returns.
	Work(ctx context.Context, w *Worker) error
	// Effects counts in SQL the effects of the run.
	Effects(ctx context.Context, db *pgxpool.Pool, c Case) (Effects, error)
}

// Worker gives a peer its case, its database and the clock of the run.
type Worker struct {
	Case
	DSN string
	// Start blocks until every process of the run is ready. It must be called exactly once.
	Start func(context.Context) error

	watch *stopwatch // of the latency workload
}

// Effects holds the effects of a run, counted in SQL. The harness compares it with Case.Wanted.
// After the latency, the leased and the relay workload, which have neither state nor sink, all of it is zero.
type Effects struct {
	Left      int64 // messages still in the queue
	Sent      int64 // distinct messages in the sink
	SentTotal int64 // sum of the amounts in the bodies of the sink
	Steps     int64 // sum of Order.Steps over all instances
	Total     int64 // sum of Order.Total over all instances
}

// registration is a peer and the cases it runs.
type registration struct {
	peer  Peer
	cases []Case
}

// peers holds the registrations of the peers, by name.
var peers = map[string]registration{}

// order is the order of peers in the output; a ratio has the earlier one above the line.
var order = []string{"edda", "inbox", "inbox-full", "inbox-random", "inbox-unnamed", "inbox-off", "relay",
	"history-bodies", "history-states", "history-steps", "history-steps10", "history-off", "otel-0", "otel-1",
	"otel-unsampled", "otel-metrics", "otel-off", "pages-20", "pages-0", "ceiling", "single", "watermillsql-batch",
	"watermillsql", "river", "river-defaults", "floor"}

// register is called from the init function of each peer's file.
func register(name string, p Peer, cases ...Case) {
	for i := range cases {
		cases[i].Peer = name
		cases[i].Processes = max(cases[i].Processes, 1)
		if cases[i].Share == 0 {
			cases[i].Share = 1
		}
	}
	peers[name] = registration{peer: p, cases: cases}
}
