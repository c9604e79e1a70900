package recoverability

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Budget bounds the retries at once that one process makes in one endpoint, so that a failing dependency is not called
// several times for each message. It is a bucket of tokens: every message that is handled puts Share into it, every
// second PerSecond, and every retry at once takes one out. When the bucket is empty a retry at once becomes one after
// Delay. No message is given up for that: the attempts of its policy stay as many as they were.
//
// What was handled and what time it is come with the failures, so that a Budget has no clock and needs no wiring.
type Budget struct {
	Share     float64       // of the handled messages; 0 is 0.1, at most 100
	PerSecond float64       // beside that, so that an idle endpoint may retry too; 0 is 10, at most 1,000,000
	Burst     int           // the most that is saved up, and what there is at first; 0 is 1,000
	Delay     time.Duration // of a retry for which there was no token, ± 10 %; 0 is 5 s
}

func (b Budget) withDefaults() (Budget, error) {
	var faults []error
	fault := func(name string, value any, want string) {
		faults = append(faults, fmt.Errorf("budget: %s is %v, want %s (0 is the default)", name, value, want))
	}
	if !(b.Share >= 0 && b.Share <= 100) { // so, because NaN is neither
		fault("Share", b.Share, "0 to 100")
	}
	if !(b.PerSecond >= 0 && b.PerSecond <= 1e6) {
		fault("PerSecond", b.PerSecond, "0 to 1000000")
	}
	if b.Burst < 0 || b.Burst > math.MaxInt32 {
		fault("Burst", b.Burst, fmt.Sprintf("0 to %d", math.MaxInt32))
	}
	if b.Delay < 0 || b.Delay > longest {
		fault("Delay", b.Delay, fmt.Sprintf("0 to %v", longest))
	}
	if b.Share == 0 {
		b.Share = 0.1
	}
	if b.PerSecond == 0 {
		b.PerSecond = 10
	}
	if b.Burst == 0 {
		b.Burst = 1000
	}
	if b.Delay == 0 {
		b.Delay = 5 * time.Second
	}
	return b, errors.Join(faults...)
}

// Limit is p under the budget. The policy that it returns has one bucket for each endpoint that uses it, and is safe
// for concurrent use. p nil is Default.
func (b Budget) Limit(p Policy) (Policy, error) {
	b, err := b.withDefaults()
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = Default
	}
	l := &limited{Budget: b, buckets: map[string]*bucket{}}
	return func(f Failure) Decision {
		d := p(f)
		if made, ok := d.(decision); !ok || made.Action != ActionRetryNow || l.take(f) {
			return d
		}
		return RetryIn(jitter(b.Delay, f.Info.ID, f.Info.Attempt))
	}, nil
}

type limited struct {
	Budget

	mu      sync.Mutex
	buckets map[string]*bucket // guarded by mu; by endpoint
}

type bucket struct {
	tokens  float64
	handled int64
	at      time.Time
}

// take takes a token, if there is one, after what has come in since the last time was put in.
func (l *limited) take(f Failure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := float64(l.Burst)
	b := l.buckets[f.Endpoint]
	if b == nil {
		b = &bucket{tokens: full, handled: f.Handled, at: f.Now}
		l.buckets[f.Endpoint] = b
	}
	if more := f.Handled - b.handled; more > 0 {
		b.tokens += float64(more) * l.Share
	}
	b.handled = f.Handled // it begins anew with a new Run
	if passed := f.Now.Sub(b.at); passed > 0 {
		b.tokens += passed.Seconds() * l.PerSecond
		b.at = f.Now
	}
	b.tokens = min(b.tokens, full)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
