package recoverability

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Budget bounds the immediate retries of one endpoint in one process, so that a failing dependency is not called
// several times for each message. It is a token bucket: every handled message adds Share tokens, every second adds
// PerSecond, and every immediate retry takes one token. When the bucket is empty, an immediate retry becomes a retry
// after Delay. The number of attempts does not change, so no message is given up earlier.
//
// A Budget has no clock: each Failure carries the time and the number of handled messages.
type Budget struct {
	Share     float64       // tokens per handled message; 0 is 0.1, at most 100
	PerSecond float64       // tokens per second, for an idle endpoint; 0 is 10, at most 1,000,000
	Burst     int           // size of the bucket, which is full at first; 0 is 1,000
	Delay     time.Duration // of a retry without a token, ± 10 %; 0 is 5 s
}

func (b Budget) withDefaults() (Budget, error) {
	var faults []error
	fault := func(name string, value any, want string) {
		faults = append(faults, fmt.Errorf("budget: %s is %v, want %s (0 is the default)", name, value, want))
	}
	if !(b.Share >= 0 && b.Share <= 100) { // written like this because NaN compares false
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

// Limit returns p with its immediate retries bounded by the budget; a nil p is Default. The returned policy has one
// bucket for each endpoint that uses it, and is safe for concurrent use if p is. The error lists every field that is
// out of range.
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

// take adds the tokens since the last call, and then takes one. It reports whether it got a token.
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
	b.handled = f.Handled // starts at zero with each Run
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
