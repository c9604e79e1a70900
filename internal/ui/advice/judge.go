package advice

import (
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/operate"
)

// EnoughMessages are the fewest messages of a saga that are judged.
const EnoughMessages = 100

// The thresholds at which advice begins. Each sentence names the number that it was made from and the threshold that
// the number has passed.
const (
	manyConflicts    = 0.02 // of the attempts
	manyStartRaces   = 0.1  // of the starts
	fewestRaces      = 10
	manyLockTimeouts = 0.1 // of the waits
	fewestTimeouts   = 10
	longCritical     = 1.0  // seconds, mean
	smallPart        = 0.1  // of the critical time
	muchWaiting      = 0.5  // of the batches' time
	muchPutDown      = 0.5  // of the messages taken
	slowHandler      = 5.0  // milliseconds, mean
	largeState       = 16.0 // KiB, mean
	hotInstance      = 20.0 // messages of a batch for one instance, mean
	fullBatches      = 0.8  // of BatchMax, mean
	longLag          = 1.0  // seconds
	mostOfEndpoint   = 0.5  // of the batches' time
	mostOfWork       = 0.5  // contention that costs less does not explain a queue
)

// advised is one saga of an endpoint and what is to be said about it. Saga "" are the endpoint's plain handlers, and
// messages that reached no handler.
type advised struct {
	counters  operate.SagaCounters
	enough    bool // there are numbers to go by
	contended bool
	findings  []finding
}

// finding is one piece of advice.
type finding struct {
	symptom   string
	number    string // what was measured, in words
	value     float64
	threshold float64
	says      string
}

// subject is what the rules look at.
type subject struct {
	operate.SagaCounters
	queue      operate.QueueInfo
	neighbours []operate.SagaCounters // the other sagas of the endpoint, and its plain handlers
	contended  bool                   // a rule before has found so
}

// rule is one thing that can be wrong. says is asked when the value has reached the threshold.
type rule struct {
	symptom   string
	number    string
	threshold float64
	contends  bool // the finding means that messages get in each other's way
	value     func(s subject) float64
	says      func(s subject, value float64) string
}

// judge says what the numbers of sagas mean. It decides and does nothing else.
func judge(all []operate.SagaCounters, queues []operate.QueueInfo) []advised {
	var result []advised
	for n, c := range all {
		s := subject{SagaCounters: c}
		for m, other := range all {
			if m != n && other.Endpoint == c.Endpoint && other.Messages.Steps > 0 {
				s.neighbours = append(s.neighbours, other)
			}
		}
		for _, q := range queues {
			if q.Endpoint == c.Endpoint {
				s.queue = q
			}
		}
		result = append(result, s.advise())
	}
	return result
}

func (s subject) advise() advised {
	a := advised{counters: s.SagaCounters, enough: s.Messages.Taken >= EnoughMessages}
	if !a.enough {
		return a
	}
	for _, r := range rules {
		value := r.value(s)
		if value < r.threshold {
			continue
		}
		s.contended = s.contended || r.contends
		a.findings = append(a.findings, finding{r.symptom, r.number, value, r.threshold, r.says(s, value)})
	}
	a.contended = s.contended
	return a
}

// The numbers that rules are about. A number that cannot be had is 0, which reaches no threshold.

func share[N int64 | time.Duration](part, whole N) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (s subject) conflictShare() float64 {
	return share(s.Messages.Conflicts, s.Messages.Steps+s.Messages.Conflicts)
}
func (s subject) waitShare() float64 { return share(s.Waiting.Wait+s.Waiting.Turn, s.Times.Batch) }
func (s subject) putDownShare() float64 {
	return share(s.Messages.Busy+s.Messages.Queued, s.Messages.Taken)
}

// contention is the part of the work that contention costs: of the attempts, of the batches' time or of the messages
// taken.
func (s subject) contention() float64 {
	return max(s.conflictShare(), s.waitShare(), s.putDownShare())
}

func mean(sum time.Duration, n int64) time.Duration {
	if n <= 0 {
		return 0
	}
	return sum / time.Duration(n)
}

func (s subject) critical() time.Duration { return mean(s.Times.Critical, s.Messages.Steps) }
func (s subject) handler() time.Duration  { return mean(s.Times.Handler, s.Messages.Steps) }

// perBatch is how long a batch takes of which the saga has a part.
func (s subject) perBatch() time.Duration { return mean(s.Times.Batch, s.Saves.Batches) }

// endpointShare is the saga's part of what the endpoint's batches take.
func (s subject) endpointShare() float64 {
	whole := s.Times.Batch
	for _, n := range s.neighbours {
		whole += n.Times.Batch
	}
	return share(s.Times.Batch, whole)
}

// only is value where a condition holds.
func only(condition bool, value float64) float64 {
	if !condition {
		return 0
	}
	return value
}

// names lists the neighbours.
func (s subject) names() string {
	var names []string
	for _, n := range s.neighbours {
		if n.Saga == "" {
			names = append(names, fmt.Sprintf("plain handlers (%d messages, critical time %s)", n.Messages.Steps,
				shortSpan(mean(n.Times.Critical, n.Messages.Steps))))
			continue
		}
		names = append(names, fmt.Sprintf("saga %s (%d messages, critical time %s)", n.Saga, n.Messages.Steps,
			shortSpan(mean(n.Times.Critical, n.Messages.Steps))))
	}
	return strings.Join(names, ", ")
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// shortSpan is a duration with three digits that count.
func shortSpan(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return d.String()
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
