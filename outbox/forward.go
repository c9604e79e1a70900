package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/hooks"
	"github.com/edda-go/edda/saga"
)

// failing is what is known about a message that has failed. It is only in memory: rows are never updated, and a process
// that takes over begins to count anew.
type failing struct {
	attempts int
	first    time.Time // by the database's clock
	refused  int       // times that it failed right behind another that was accepted, see stuck.go
	alone    bool      // it is forwarded alone, see search.go
}

// failures are the messages that have failed and are still in the queue.
type failures map[saga.ID]*failing

const mostRemembered = 100_000 // of anything that is kept in memory for each message

// bounded empties a map that has grown too large: its entries were only advice.
func bounded[K comparable, V any](m map[K]V) {
	if len(m) >= mostRemembered {
		clear(m)
	}
}

func (f failures) tried(id saga.ID) int {
	if known := f[id]; known != nil {
		return known.attempts
	}
	return 0
}

// note counts a failed attempt, the first of which may be now.
func (f failures) note(id saga.ID, now time.Time) *failing {
	known := f[id]
	if known == nil {
		known = &failing{first: now}
		bounded(f)
		f[id] = known
	}
	known.attempts++
	return known
}

// suspects reports whether a message has failed right behind a success.
func (f failures) suspects(id saga.ID) bool {
	known := f[id]
	return known != nil && known.refused > 0
}

// believeAll clears all suspicion.
func (f failures) believeAll() {
	for _, known := range f {
		known.refused = 0
	}
}

// carrier gives messages to the other side, and decides the fate of each.
type carrier struct {
	relay    *Relay
	reader   *reader
	log      *reporter
	failures failures
	patience *backoff.ExponentialBackOff // with the other side
	search   search                      // for the message that makes forward fail as a whole
	probing  probing                     // for messages behind a stuck one that are accepted
	judges   hooks.Guest                 // Permanent, and methods of errors
}

func newCarrier(r *Relay, reader *reader, f failures, log *reporter) *carrier {
	return &carrier{
		relay: r, reader: reader, log: log, failures: f, search: newSearch(r.options.BatchMax),
		patience: backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.options.Retry), backoff.WithMultiplier(2),
			backoff.WithMaxInterval(r.options.RetryMost), backoff.WithMaxElapsedTime(0)),
	}
}

// carry forwards what is undecided. What failed is left in the queue.
func (c *carrier) carry(life, ctx context.Context, b *batch) {
	begun := time.Now()
	defer func() { b.took = time.Since(begun) }()
	messages := b.undecided()
	if len(messages) == 0 {
		return
	}
	through := c.forwardAll(life, ctx, b, messages)
	if m := c.stuck(messages, through); m != nil && ctx.Err() == nil {
		c.probe(life, ctx, b, m, through)
	}
}

// forgetEnded forgets the failures of messages that are gone.
func (c *carrier) forgetEnded(ended []*message) {
	for _, m := range ended {
		delete(c.failures, m.ID)
	}
}

// forwardFor is how long a pass begins further calls of forward before it deletes what was accepted.
const forwardFor = time.Second

// forwardAll forwards messages, as many at a time as the search says, up to the first that is left. It reports whether
// one of them was accepted. After forwardFor, or when life has ended, it begins no further call.
func (c *carrier) forwardAll(life, ctx context.Context, b *batch, messages []*message) (through bool) {
	for begun := time.Now(); len(messages) > 0; {
		some := messages[:c.portion(messages)]
		went, whole := c.try(ctx, b, some)
		through = through || went
		if !whole {
			if slices.ContainsFunc(some, func(m *message) bool { return m.fate == fateLeft }) {
				return through
			}
			messages = messages[len(some):]
		}
		if ctx.Err() != nil || life.Err() != nil || time.Since(begun) > forwardFor {
			return through
		}
	}
	return through
}

// try forwards messages together. It reports whether one of them was accepted, and whether the call failed as a whole:
// then nothing is known about any of them, unless there is only one, which has then failed.
func (c *carrier) try(ctx context.Context, b *batch, messages []*message) (through, whole bool) {
	errs, wrong := c.give(ctx, messages)
	switch {
	case wrong == nil:
		c.search.passed(len(messages))
	case ctx.Err() != nil: // a shutdown is no failure of anybody
		return false, false
	case len(messages) > 1:
		c.search.failed(len(messages))
		c.log.whole(ctx, len(messages), wrong)
		return false, true
	default:
		c.search.failed(1)
		errs = []error{wrong}
		defer c.isolate(messages[0])
	}
	return c.decide(ctx, b, messages, errs), false
}

// decide gives each message the fate of its error. It reports whether one of them was accepted.
func (c *carrier) decide(ctx context.Context, b *batch, messages []*message, errs []error) (through bool) {
	failed, ended := false, false
	for n, err := range errs {
		m := messages[n]
		switch {
		case err == nil:
			m.fate, through = fateRelayed, true
			delete(c.failures, m.ID)
		case ctx.Err() != nil: // a shutdown is no failure of anybody
		default:
			failed = c.fail(b, m, err) || failed
		}
		ended = ended || m.fate != fateLeft
	}
	if through {
		c.patience.Reset()
	}
	// Every message waits for an earlier one, so nothing was attempted. Back off, or the loop would spin.
	if !failed && !ended && ctx.Err() == nil {
		messages[0].err, failed = ErrBehind, true
	}
	if failed {
		b.wait = max(b.wait, run.Jitter(c.patience.NextBackOff()))
	}
	return through
}

// give calls forward. It returns one error for each message, or the error of the call.
func (c *carrier) give(ctx context.Context, messages []*message) (errs []error, wrong error) {
	deliveries := make([]*saga.Delivery, len(messages))
	for n, m := range messages {
		deliveries[n] = &m.delivery
	}
	limited, cancel := context.WithTimeout(ctx, c.relay.options.forwardMost())
	defer cancel()
	var given forwarded // of this call: one that was left behind may still return
	switch ended := c.relay.calls.Do(func(h *run.Hand) { c.call(limited, h, deliveries, &given) }); {
	case errors.Is(ended, run.ErrLeft):
		most := c.relay.options.forwardMost() + run.Patience
		return nil, fmt.Errorf("forward did not return within %v: %w", most, ended)
	case ended != nil:
		return nil, errForwardExited
	}
	errs, wrong = given.errs, given.wrong
	switch {
	case wrong != nil:
		return nil, wrong
	case len(errs) == 0:
		return make([]error, len(messages)), nil
	case len(errs) != len(messages):
		return nil, fmt.Errorf("forward returned %d errors for %d messages: want one for each, or none at all",
			len(errs), len(messages))
	}
	return errs, nil
}

var errForwardExited = errors.New("forward ended its goroutine (runtime.Goexit, or FailNow of package testing)")

// recovered makes an error of a panic of a user's function.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &saga.PanicError{Value: v, Stack: debug.Stack()}
	}
}

// call is one call of the user's function, which may panic or never return.
func (c *carrier) call(ctx context.Context, h *run.Hand, deliveries []*saga.Delivery, result *forwarded) {
	var given forwarded
	func() {
		defer recovered(&given.wrong)
		silent := time.AfterFunc(c.relay.options.Drain, func() { c.log.silence(ctx, len(deliveries)) })
		defer silent.Stop()
		h.Enter("forward", [16]byte{}, time.Now())
		given.errs = c.relay.forward(ctx, deliveries)
	}()
	h.Return()
	*result = given
}

// forwarded is the result of one call.
type forwarded struct {
	errs  []error
	wrong error // of the call
}

// judged is what an error of forward says.
type judged struct {
	behind    bool // it says nothing about its message
	discard   *saga.DiscardError
	permanent bool
	after     time.Duration
}

// judge classifies an error. The methods of the error and Permanent are the user's.
func (c *carrier) judge(err error) (j judged) {
	var permanent *saga.PermanentError
	var after *saga.RetryAfterError
	switch {
	case errors.Is(err, ErrBehind):
		return judged{behind: true}
	case errors.As(err, &j.discard):
		return j
	case errors.As(err, &permanent) || c.relay.options.Permanent(err):
		return judged{permanent: true}
	case errors.As(err, &after):
		return judged{after: after.After}
	}
	return judged{}
}

// fail judges a failure. It reports whether m will be tried again.
func (c *carrier) fail(b *batch, m *message, err error) (again bool) {
	examined := c.judges.Examined(hooks.Patience, err)
	j, wrong := hooks.Ask(&c.judges, hooks.Patience, func() judged { return c.judge(examined) })
	if j.behind {
		return false
	}
	if m.err = examined; wrong != nil {
		m.err = errors.Join(examined, fmt.Errorf("RelayOptions.Permanent, or a method of the error: %w", wrong))
	}
	f := c.failures.note(m.ID, b.clock())
	if m.FirstFailed.IsZero() {
		m.FirstFailed = f.first
	}
	switch {
	case j.discard != nil:
		m.discard(j.discard.Reason)
		return false
	case j.permanent:
		c.giveUp(m, "permanent", m.err)
		return false
	}
	b.wait = max(b.wait, min(j.after, c.relay.options.RetryMost))
	return true
}

// giveUp makes a dead letter of m, with all attempts that this process knows of.
func (c *carrier) giveUp(m *message, reason string, err error) {
	m.Attempt += c.failures.tried(m.ID)
	m.die(reason, err)
}
