package bus

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

//go:embed counters.sql
var counterStatements string

// SagaCounters are what one saga did in one endpoint, in all processes together, added up. They are for advice: they
// are written every ten seconds or so and when an endpoint has drained, what a process had not written when it crashed
// is lost, and a write that failed is not repeated.
type SagaCounters struct {
	Endpoint string
	Saga     string // "" stands for the endpoint's handlers that are no saga
	// "pessimistic", "optimistic", or "" without a saga; with the next two as the process that wrote last had it
	Store string

	Concurrency int
	BatchMax    int
	Since, Last time.Time // of the numbers, by the database's clock

	Taken         int64 // messages that batches had in hand, each as often as it was
	Steps         int64 // messages that were handled
	Retries       int64 // attempts that failed and were followed by another
	Discarded     int64
	Dead          int64 // dead letters
	DeadConflicts int64 // of these, for lost saves alone
	Conflicts     int64 // messages whose instance lost its save
	Busy          int64 // messages that were put down because another process had their instance
	Queued        int64 // messages that were put down because another worker of the process had it

	Batches    int64 // that stepped at least one instance
	Instances  int64 // stepped by these batches
	Writes     int64 // versions that were written, the ends included
	Starts     int64 // of these, first versions
	Lost       int64 // saves that lost
	LostStarts int64 // of these, starts that came second
	StateBytes int64 // of the states that were written

	Waits        int64 // of a batch for an instance that another process had
	WaitTimeouts int64 // of these, those that ended without it
	Turns        int64 // of a batch for an instance that another worker of the process had

	Handler  time.Duration // of Steps: the handlers' own time
	Critical time.Duration // of Steps: from when a message was sent, or due, to its commit
	Batch    time.Duration // from take to commit, a batch's time shared among its messages
	Wait     time.Duration // of Waits
	Turn     time.Duration // of Turns
}

// CounterPeriod is what SagaCounters reads when it is asked for 0.
const CounterPeriod = 24 * time.Hour

const (
	countersEvery  = 10 * time.Second
	countersWithin = 2 * time.Second // a write of them
	countersKept   = 14 * 24 * time.Hour
)

// SagaCounters tells what sagas did in the last period, in the order of endpoints and sagas; 0 is CounterPeriod. The
// numbers are kept by the hour, so up to an hour more is in them, and for fourteen days. It reads at most a row for
// each saga and hour, locks nothing and needs SELECT alone. Errors: period is negative; those of the database.
func (b *Bus) SagaCounters(ctx context.Context, period time.Duration) ([]SagaCounters, error) {
	if period < 0 {
		return nil, fmt.Errorf("read the counters of sagas: the period is %v, want 0 (a day) or more", period)
	}
	setDefault(&period, CounterPeriod)
	rows, err := b.pool.Query(ctx, b.counters.Get("read_counters"), period.Microseconds())
	if err == nil {
		var all []SagaCounters
		if all, err = pgx.CollectRows(rows, readCounters); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("read the counters of sagas: %w", pg.Explain(err))
}

func readCounters(row pgx.CollectableRow) (c SagaCounters, err error) {
	var read []int64
	err = row.Scan(&c.Endpoint, &c.Saga, &c.Store, &c.Concurrency, &c.BatchMax, &c.Since, &c.Last, &read)
	if err != nil {
		return c, err
	}
	c.Since, c.Last = c.Since.UTC(), c.Last.UTC()
	var s sums
	copy(s[:], read)
	for n, number := range []*int64{
		countTaken: &c.Taken, countSteps: &c.Steps, countRetries: &c.Retries, countDiscarded: &c.Discarded,
		countDead:          &c.Dead,
		countDeadConflicts: &c.DeadConflicts, countConflicts: &c.Conflicts, countBusy: &c.Busy, countQueued: &c.Queued,
		countBatches: &c.Batches, countInstances: &c.Instances, countWrites: &c.Writes, countStarts: &c.Starts,
		countLost: &c.Lost, countLostStarts: &c.LostStarts, countStateBytes: &c.StateBytes,
		countWaits: &c.Waits, countWaitTimeouts: &c.WaitTimeouts, countTurns: &c.Turns,
	} {
		*number = s[n]
	}
	for n, d := range map[count]*time.Duration{
		timeHandler: &c.Handler, timeCritical: &c.Critical, timeBatch: &c.Batch, timeWait: &c.Wait, timeTurn: &c.Turn,
	} {
		*d = time.Duration(s[n]) * time.Microsecond
	}
	return c, nil
}

// writeCounters adds, every ten seconds or so, what the endpoint has counted to the table. An endpoint that did nothing
// writes nothing.
func (e *Endpoint) writeCounters(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(countersEvery)) == nil {
		e.flushCounters(ctx)
	}
	return nil
}

// flushCounters is one write. What could not be written is forgotten: repeating it could count it twice.
func (e *Endpoint) flushCounters(ctx context.Context) {
	counted, since := e.counts.collect()
	if len(counted) == 0 {
		return
	}
	slices.SortFunc(counted, func(a, b sagaSums) int { return strings.Compare(a.saga, b.saga) })
	pipeline := &pgx.Batch{}
	pipeline.Queue(e.bus.counters.Get("before_counting"))
	add := e.bus.counters.Get("add_counters")
	for _, c := range counted {
		args := []any{e.name, c.saga, c.store, e.options.Concurrency, e.options.BatchMax, since.Microseconds()}
		for n := range c.sums {
			args = append(args, c.sums.stored(count(n)))
		}
		pipeline.Queue(add, args...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countersWithin) // a drain wants them written
	defer cancel()
	if err := e.bus.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		e.bus.calm.Warn("edda: counters were not written", "endpoint", e.name, "error", pg.Explain(err))
	}
}

// pruneCounters deletes what is older than anybody asks for.
func (b *Bus) pruneCounters(ctx context.Context) (int64, error) {
	tag, err := b.pool.Exec(ctx, b.counters.Get("prune_counters"), countersKept.Seconds(), cleanRows)
	return tag.RowsAffected(), err
}
