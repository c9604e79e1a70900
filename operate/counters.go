package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/counters"
)

// SagaCounters add up what one saga did in one endpoint, in all processes. They are approximate: a process writes them
// every ten seconds or so and when an endpoint has drained, and does not repeat a write that failed. A crash loses the
// last ones.
type SagaCounters struct {
	Endpoint string
	Saga     string // "" stands for the endpoint's plain handlers
	Store    string // "pessimistic", "optimistic", or "" without a saga; from the process that wrote last

	Concurrency int // of the process that wrote last, as is BatchMax
	BatchMax    int
	Since, Last time.Time // of the numbers, by the database's clock

	Messages MessageCounters
	Saves    SaveCounters
	Waiting  WaitCounters
	Times    TimeCounters
}

// MessageCounters count the fates of messages.
type MessageCounters struct {
	Taken         int64 // messages that batches had in hand; a message may count several times
	Steps         int64 // messages that were handled
	Retries       int64 // attempts that failed and were followed by another
	Discarded     int64
	Dead          int64 // dead letters
	DeadConflicts int64 // of these, for lost saves alone
	Conflicts     int64 // messages whose instance lost its save
	Busy          int64 // messages that were put down because another process had their instance
	Queued        int64 // messages that were put down because another worker of the process had it
}

// SaveCounters say what was written.
type SaveCounters struct {
	Batches    int64 // that stepped at least one instance
	Instances  int64 // stepped by these batches
	Writes     int64 // versions that were written, the ends included
	Starts     int64 // of these, first versions
	Lost       int64 // saves that lost
	LostStarts int64 // of these, starts that came second
	StateBytes int64 // of the states that were written
}

// WaitCounters say how batches waited for instances.
type WaitCounters struct {
	Waits    int64 // for an instance that another process had
	Timeouts int64 // of these, those that ended without it
	Wait     time.Duration
	Turns    int64 // for an instance that another worker of the process had
	Turn     time.Duration
}

// TimeCounters are how long messages took.
type TimeCounters struct {
	Handler  time.Duration // of Steps: the handlers' own time
	Critical time.Duration // of Steps: from when a message was sent, or due, to its commit
	Batch    time.Duration // from take to commit, a batch's time shared among its messages
}

// CounterPeriod is what Sagas.Counters reads when it is asked for 0.
const CounterPeriod = 24 * time.Hour

// Counters returns what sagas did in the last period, in the order of endpoints and sagas; 0 is CounterPeriod. The
// numbers are kept by the hour, for fourteen days, so they may include up to an hour more than the period. Counters
// reads at most a row for each saga and hour, locks nothing and needs only SELECT. Errors: period is negative; those of
// the database.
func (s Sagas) Counters(ctx context.Context, period time.Duration) ([]SagaCounters, error) {
	if period < 0 {
		return nil, fmt.Errorf("read the counters of sagas: the period is %v, want 0 (a day) or more", period)
	}
	rows, err := s.o.counters.Read(ctx, s.o.pool, cmp.Or(period, CounterPeriod))
	if err != nil {
		return nil, fmt.Errorf("read the counters of sagas: %w", pgerr.Explain(err))
	}
	all := make([]SagaCounters, 0, len(rows))
	for _, r := range rows {
		all = append(all, countersOf(r))
	}
	return all, nil
}

func countersOf(r counters.Row) SagaCounters {
	s := &r.Sums
	return SagaCounters{
		Endpoint: r.Endpoint, Saga: r.Saga.Saga, Store: r.Store,
		Concurrency: r.Concurrency, BatchMax: r.BatchMax, Since: r.First, Last: r.Last,
		Messages: MessageCounters{
			Taken: s[counters.Taken], Steps: s[counters.Steps], Retries: s[counters.Retries],
			Discarded: s[counters.Discarded], Dead: s[counters.Dead], DeadConflicts: s[counters.DeadConflicts],
			Conflicts: s[counters.Conflicts], Busy: s[counters.Busy], Queued: s[counters.Queued],
		},
		Saves: SaveCounters{
			Batches: s[counters.Batches], Instances: s[counters.Instances], Writes: s[counters.Writes],
			Starts: s[counters.Starts], Lost: s[counters.Lost], LostStarts: s[counters.LostStarts],
			StateBytes: s[counters.StateBytes],
		},
		Waiting: WaitCounters{
			Waits: s[counters.Waits], Timeouts: s[counters.WaitTimeouts], Wait: time.Duration(s[counters.Wait]),
			Turns: s[counters.Turns], Turn: time.Duration(s[counters.Turn]),
		},
		Times: TimeCounters{
			Handler: time.Duration(s[counters.Handler]), Critical: time.Duration(s[counters.Critical]),
			Batch: time.Duration(s[counters.Batch]),
		},
	}
}
