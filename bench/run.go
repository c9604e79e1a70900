package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Result is one run of one case.
type Result struct {
	Case
	Seconds   float64 `json:"seconds"`
	Rate      float64 `json:"rate"`       // messages per second
	ClientCPU float64 `json:"client_cpu"` // microseconds per message, all processes of the peer
	ServerCPU float64 `json:"server_cpu"` // microseconds per message, zero when the server is not on this machine
	// bytes per message that Postgres wrote to its log during the run
	WAL   float64 `json:"wal"`
	P50   float64 `json:"p50_ms,omitempty"`
	P99   float64 `json:"p99_ms,omitempty"`
	First float64 `json:"first_tenth,omitempty"` // messages per second, of the relay
	Last  float64 `json:"last_tenth,omitempty"`
}

// harness runs cases on one server.
type harness struct {
	dsn string
	db  *pgxpool.Pool
	log io.Writer // a line for each run

	kept map[Case]*kept
}

// rounds runs every case once a round, so that a machine that becomes slower does so for all peers. Workloads that keep
// their queues run last, so that their large tables do not slow small workloads down.
func (h *harness) rounds(ctx context.Context, cases []Case, rounds int) ([]Result, error) {
	var plain, withKept []Case
	for _, c := range cases {
		if c.Kept() {
			withKept = append(withKept, c)
		} else {
			plain = append(plain, c)
		}
	}
	all, err := h.interleave(ctx, plain, rounds)
	if err != nil {
		return nil, err
	}
	defer h.dropKept(ctx, withKept)
	if err := h.prepareKept(ctx, withKept); err != nil {
		return nil, err
	}
	more, err := h.interleave(ctx, withKept, rounds*keptRounds)
	return append(all, more...), err
}

// interleave begins each round with a different case: the first of a round is the last of the next.
func (h *harness) interleave(ctx context.Context, cases []Case, rounds int) ([]Result, error) {
	before, err := deadlocks(ctx, h.db)
	if err != nil {
		return nil, err
	}
	var all []Result
	for round := range rounds {
		for i := range cases {
			c := cases[(i+round)%len(cases)]
			result, err := h.run(ctx, c)
			if err == nil {
				err = h.noDeadlocks(ctx, before)
			}
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", c.Peer, c.Name(), err)
			}
			fmt.Fprintf(h.log, "round %d/%d  %-18s %-20s %s\n", round+1, rounds, c.Peer, c.Name(), result.figure())
			all = append(all, result)
		}
	}
	return all, nil
}

// run prepares, measures and counts one case.
func (h *harness) run(ctx context.Context, c Case) (Result, error) {
	if c.Kept() {
		return h.runKept(ctx, c)
	}
	defer h.drop(ctx, c)
	if err := h.prepare(ctx, c); err != nil {
		return Result{}, err
	}
	result, err := h.measure(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return result, h.check(ctx, c)
}

// noDeadlocks compares with the count before the first run, so that one the server reports late is still met.
func (h *harness) noDeadlocks(ctx context.Context, before int64) error {
	after, err := deadlocks(ctx, h.db)
	if err == nil && after != before {
		err = fmt.Errorf("%d deadlocks", after-before)
	}
	return err
}

// prepare leaves each run the same starting point: a checkpoint behind it, its tables filled and analysed.
func (h *harness) prepare(ctx context.Context, c Case) error {
	if err := h.drop(ctx, c); err != nil {
		return err
	}
	if _, err := h.db.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := peers[c.Peer].peer.Prepare(ctx, h.db, c); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	_, err := h.db.Exec(ctx, "ANALYZE")
	return err
}

func (h *harness) drop(ctx context.Context, c Case) error {
	_, err := h.db.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{c.Schema()}.Sanitize()+" CASCADE")
	return err
}

// measure runs the peer's work and reads the clocks around it.
func (h *harness) measure(ctx context.Context, c Case) (Result, error) {
	server := serverCPU(ctx, h.db)
	var client, server0 time.Duration
	var start time.Time
	var wal0 int64
	begunWith = 0
	latencies, err := work(ctx, h.dsn, c, func() {
		wal0 = walWritten(ctx, h.db)
		client, server0, start = clientCPU(), server(), time.Now()
	})
	if err != nil {
		return Result{}, err
	}
	seconds := time.Since(start).Seconds()
	wal := walWritten(ctx, h.db) - wal0
	perMessage := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(c.N) }
	result := Result{
		Case:      c,
		Seconds:   seconds,
		Rate:      float64(c.N) / seconds,
		ClientCPU: perMessage(clientCPU() - client - begunWith),
		ServerCPU: perMessage(server() - server0),
		WAL:       float64(wal) / float64(c.N),
		P50:       percentile(latencies, 50),
		P99:       percentile(latencies, 99),
	}
	if c.Workload == Relay {
		result.First, result.Last = tenths.first, tenths.last
	}
	return result, nil
}

// walWritten returns the end of the write-ahead log. Its growth is the load of replicas and archives, and does not
// depend on how busy the machine is.
func walWritten(ctx context.Context, db *pgxpool.Pool) (bytes int64) {
	// a failure shows as a figure that cannot be
	_ = db.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn() - '0/0'").Scan(&bytes)
	return bytes
}

// check compares the effects of the run with the wanted ones.
func (h *harness) check(ctx context.Context, c Case) error {
	got, err := peers[c.Peer].peer.Effects(ctx, h.db, c)
	if err != nil {
		return fmt.Errorf("count effects: %w", err)
	}
	if want := c.Wanted(); got != want {
		return fmt.Errorf("wrong effects:\n got %+v\nwant %+v", got, want)
	}
	return nil
}
