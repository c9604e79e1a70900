package outcome

import (
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/counters"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Counts adds up the results of an endpoint's batches, or of a leased endpoint's finishes, since they were last
// written to the database. A batch adds all its results at once, from data that it already has in memory. Safe for
// concurrent use.
type Counts struct {
	mu    sync.Mutex
	sagas map[*saga.Definition]*counters.Sums // the key nil is for handlers that belong to no saga
	since time.Time
}

// NewCounts returns empty counts.
func NewCounts() *Counts {
	return &Counts{sagas: map[*saga.Definition]*counters.Sums{}, since: time.Now()}
}

// of returns the numbers of a saga, and creates them if needed. The caller holds mu.
func (c *Counts) of(d *saga.Definition) *counters.Sums {
	s := c.sagas[d]
	if s == nil {
		s = &counters.Sums{}
		c.sagas[d] = s
	}
	return s
}

// Collect returns the counts since the last call, and the time since then, and starts new ones.
func (c *Counts) Collect() (counted []counters.Saga, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d, s := range c.sagas {
		if *s == (counters.Sums{}) {
			continue
		}
		one := counters.Saga{Sums: *s}
		if d != nil {
			one.Saga, one.Store = d.Name(), StoreName(d.Options().Store)
		}
		counted = append(counted, one)
		*s = counters.Sums{}
	}
	since, c.since = time.Since(c.since), time.Now()
	return counted, since
}

// StoreName returns the name of a store in the counters.
func StoreName(s saga.Store) string {
	if s == saga.Optimistic {
		return "optimistic"
	}
	return "pessimistic"
}

// HolderWait describes how a batch waited for an instance that another transaction held.
type HolderWait struct {
	Of     *saga.Definition // nil: it did not wait
	Took   time.Duration
	Failed bool // it did not get the instance
}

// Waits are the waits of a batch for a worker of its process, and for a different process.
type Waits struct{ Turn, Holder HolderWait }

// AddBatch adds a batch that has ended with err, with its waits, its instances and their writes. For a batch that was
// rolled back it adds only the waits: the next batch that decides about its messages counts them.
func (c *Counts) AddBatch(
	done *Effects, err error, waits Waits, instances []*contention.Instance, writes []persistence.Write,
) {
	if len(done.In.Messages) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := &waits.Turn; w.Of != nil {
		s := c.of(w.Of)
		s[counters.Turns]++
		s[counters.Turn] += int64(w.Took)
	}
	if w := &waits.Holder; w.Of != nil {
		s := c.of(w.Of)
		s[counters.Waits]++
		s[counters.Wait] += int64(w.Took)
		if w.Failed {
			s[counters.WaitTimeouts]++
		}
	}
	if err == nil {
		c.countMessages(done.In)
		c.countInstances(instances, writes)
	}
}

// AddFinished adds the decisions of a finish of a leased endpoint.
func (c *Counts) AddFinished(done *Effects) {
	if len(done.In.Messages) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countMessages(done.In)
	for _, m := range done.In.Messages { // handlers that ran before the transaction
		c.of(sagaOf(m))[counters.Batch] += int64(m.Step.Took)
	}
}

// countMessages requires that the caller holds mu.
func (c *Counts) countMessages(in *message.Decoder) {
	now, share := in.Clock(), int64(time.Since(in.Begun))/int64(len(in.Messages))
	var last *saga.Definition
	s := c.of(nil)
	for _, m := range in.Messages {
		if d := sagaOf(m); d != last {
			s, last = c.of(d), d
		}
		s[counters.Taken]++
		s[counters.Batch] += share
		switch m.Fate {
		case message.FateDone:
			s[counters.Steps]++
			s[counters.Handler] += int64(m.Step.Took)
			s[counters.Critical] += int64(now.Sub(since(m)))
		case message.FateAgain:
			if !m.Conflicted {
				s[counters.Retries]++
			}
		case message.FateDead:
			s[counters.Dead]++
			if m.Conflicted {
				s[counters.DeadConflicts]++
			}
		case message.FateDropped:
			s[counters.Discarded]++
		case message.FateLeft:
			countLeft(s, m)
		}
		if m.Conflicted {
			s[counters.Conflicts]++
		}
	}
	for _, a := range in.Retried {
		if a.Of.Fate != message.FateLeft { // a message that lost to a conflict was not handled
			c.of(sagaOf(a.Of))[counters.Retries]++
		}
	}
}

// sagaOf returns the saga of m; nil if it has no saga, or the saga is not yet determined.
func sagaOf(m *message.Message) *saga.Definition {
	if m.Consumer == nil {
		return nil
	}
	return m.Consumer.Definition
}

// since returns the start of the critical time of m: when it was sent, or due.
func since(m *message.Message) time.Time {
	if m.Sent.After(m.Due) {
		return m.Sent
	}
	return m.Due
}

func countLeft(s *counters.Sums, m *message.Message) {
	switch {
	case m.Instance == nil:
	case m.Instance.BusyThere():
		s[counters.Busy]++
	case m.Instance.BusyHere():
		s[counters.Queued]++
	}
}

// countInstances requires that the caller holds mu.
func (c *Counts) countInstances(instances []*contention.Instance, writes []persistence.Write) {
	var few [4]*counters.Sums
	seen := few[:0]
	for _, i := range instances {
		if i.Write < 0 {
			continue
		}
		s := c.of(i.Def)
		if !slices.Contains(seen, s) {
			seen = append(seen, s)
			s[counters.Batches]++
		}
		s[counters.Instances]++
		w := &writes[i.Write]
		start := w.Op == persistence.Start || w.Op == persistence.StartAndComplete
		switch {
		case !i.Won:
			s[counters.Lost]++
			if start {
				s[counters.LostStarts]++
			}
		case w.Op != persistence.Check:
			s[counters.Writes]++
			s[counters.StateBytes] += int64(len(w.Instance.State))
			if start {
				s[counters.Starts]++
			}
		}
	}
}

// Report counts how the messages of a transaction ended.
type Report struct {
	Taken    int   // messages that were taken
	Handled  int   // messages of Taken that were decided
	Consumed int   // messages of Handled that a handler handled
	Done     int   // messages of Handled that were handled or are not wanted
	Busy     int   // messages that were left because other workers have their instances
	Failures int   // attempts that failed, except conflicts
	Failure  error // the error of the last of them
}

// ReportOf returns the report on the transaction of e; err is why it was rolled back, or nil.
func ReportOf(e *Effects, err error) Report {
	r := Report{Taken: len(e.In.Messages), Failures: e.In.Failures, Failure: e.In.Failure}
	for _, m := range e.In.Messages {
		switch {
		case err != nil:
		case m.Fate != message.FateLeft:
			r.Handled++
			if m.Fate == message.FateDone {
				r.Consumed++
			}
			if m.Fate == message.FateDone || m.Fate == message.FateDropped && m.Err == nil {
				r.Done++
			}
		case m.Instance != nil && (m.Instance.BusyHere() || m.Instance.BusyThere()):
			r.Busy++
		}
	}
	return r
}
