package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/counters"
)

// SagaCounters are the sums of the counters of one saga in one endpoint, over all processes. They are approximate: a
// process writes them about every ten seconds and when an endpoint has drained, and does not repeat a write that
// failed. A crash loses the counts since the last write.
type SagaCounters struct {
	Endpoint string
	Saga     string // "" for the endpoint's plain handlers
	Store    string // "pessimistic", "optimistic", or "" without a saga; of the process that wrote last

	Concurrency int // of the process that wrote last, as is BatchMax
	BatchMax    int
	Since, Last time.Time // of the counted period, by the database's clock

	Messages MessageCounters
	Saves    SaveCounters
	Waiting  WaitCounters
	Times    TimeCounters
}

// MessageCounters count the outcomes of messages.
type MessageCounters struct {
	Taken         int64 // messages that batches have taken; a message may count several times
	Steps         int64 // handled messages
	Retries       int64 // failed attempts that are retried
	Discarded     int64
	Dead          int64 // dead letters
	DeadConflicts int64 // dead letters whose only failures were lost saves
	Conflicts     int64 // messages whose instance lost its save
	Busy          int64 // messages that a batch put back because a different process had their instance
	Queued        int64 // messages that a batch put back because a second worker of the process had it
}

// SaveCounters count the writes of instances.
type SaveCounters struct {
	Batches    int64 // batches that stepped at least one instance
	Instances  int64 // stepped by these batches
	Writes     int64 // versions that were written, including the ends
	Starts     int64 // of Writes: first versions
	Lost       int64 // saves that failed because a different transaction was first
	LostStarts int64 // of Lost: starts that came second
	StateBytes int64 // of the states that were written
}

// WaitCounters count how often, and for how long, batches waited for instances.
type WaitCounters struct {
	Waits    int64 // for an instance that a different process had
	Timeouts int64 // of Waits: waits that ended without the instance
	Wait     time.Duration
	Turns    int64 // for an instance that a second worker of the process had
	Turn     time.Duration
}

// TimeCounters are sums of durations.
type TimeCounters struct {
	Handler  time.Duration // of Steps: the time in handlers
	Critical time.Duration // of Steps: from the time when a message was sent, or due, to its commit
	Batch    time.Duration // from take to commit, the time of a batch divided among its messages
}

const counterPeriod = 24 * time.Hour

// Counters returns the counters of sagas in the last period, in the order of endpoints and sagas; 0 is a day.
// The counters are kept by the hour, for fourteen days, so the result may include up to an hour more than the period.
// Counters reads at most one row for each saga and hour, locks nothing and needs only SELECT. It returns an error if
// period is negative, or if the query fails.
func (e Endpoints) Counters(ctx context.Context, period time.Duration) ([]SagaCounters, error) {
	if period < 0 {
		return nil, fmt.Errorf("read the counters of sagas: the period is %v, want 0 (a day) or more", period)
	}
	rows, err := e.o.counters.Read(ctx, e.o.pool, cmp.Or(period, counterPeriod))
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
