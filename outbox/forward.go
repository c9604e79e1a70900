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
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/saga"
)

// failing is the record of a message that has failed. It is only in memory: rows are never updated, and a process
// that takes over starts counting again.
type failing struct {
	attempts int
	first    time.Time // by the database's clock
	refused  int       // times that it failed right after a success, see stuck.go
	alone    bool      // it is forwarded alone, see search.go
}

// failures are the messages that have failed and are still in the queue.
type failures map[saga.ID]*failing

const mostRemembered = 100_000 // entries of each map that is kept in memory per message

// bounded empties a map that has grown too large: its entries are only hints.
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

// note counts a failed attempt at the time now.
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

// suspects reports whether a message has failed right after a success.
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
	patience *backoff.ExponentialBackOff // delays of retries
	search   search                      // for the message that makes forward fail as a whole
	probing  probing                     // for accepted messages behind a stuck one
	judges   handlers.Guest              // calls Permanent, and methods of errors
}

func newCarrier(r *Relay, reader *reader, f failures, log *reporter) *carrier {
	return &carrier{
		relay: r, reader: reader, log: log, failures: f, search: newSearch(r.options.BatchMax),
		patience: backoff.NewExponentialBackOff(backoff.WithInitialInterval(r.options.Retry), backoff.WithMultiplier(2),
			backoff.WithMaxInterval(r.options.MaxRetryDelay), backoff.WithMaxElapsedTime(0)),
	}
}

// carry forwards the undecided messages. Failed messages are left in the queue.
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

// forgetEnded removes the failures of messages that are gone.
func (c *carrier) forgetEnded(ended []*message) {
	for _, m := range ended {
		delete(c.failures, m.ID)
	}
}

// forwardFor is the time after which a pass begins no further call of forward, and deletes the accepted messages.
const forwardFor = time.Second

// forwardAll forwards messages, in portions that the search determines, up to the first that is left. It reports
// whether one of them was accepted. After forwardFor, or when life has ended, it begins no further call.
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

// try forwards messages together. It reports whether one of them was accepted, and whether the call failed as a
// whole. After such a failure the fates are unknown; a single message has then failed.
func (c *carrier) try(ctx context.Context, b *batch, messages []*message) (through, whole bool) {
	errs, wrong := c.give(ctx, messages)
	switch {
	case wrong == nil:
		c.search.passed(len(messages))
	case ctx.Err() != nil: // a shutdown is not a failure
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

// decide sets the fate of each message according to its error. It reports whether one of them was accepted.
func (c *carrier) decide(ctx context.Context, b *batch, messages []*message, errs []error) (through bool) {
	failed, ended := false, false
	for n, err := range errs {
		m := messages[n]
		switch {
		case err == nil:
			m.fate, through = fateRelayed, true
			delete(c.failures, m.ID)
		case ctx.Err() != nil: // a shutdown is not a failure
		default:
			failed = c.fail(b, m, err) || failed
		}
		ended = ended || m.fate != fateLeft
	}
	if through {
		c.patience.Reset()
	}
	// Every message waits for an earlier one, so no message was attempted. Back off, or the loop would spin.
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
	var given forwarded // of this call: an abandoned earlier call may still return
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
		return nil, fmt.Errorf("forward returned %d errors for %d messages: want one for each, or nil",
			len(errs), len(messages))
	}
	return errs, nil
}

var errForwardExited = errors.New("forward ended its goroutine (runtime.Goexit, or FailNow of package testing)")

// recovered turns a panic of a user's function into an error.
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

// judged is the classification of an error of forward.
type judged struct {
	behind    bool // the message was not attempted
	discard   *saga.DiscardError
	permanent bool
	after     time.Duration
}

// judge classifies an error. It calls user code: the methods of the error, and Permanent.
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

// fail judges a failure. It reports whether m will be retried.
func (c *carrier) fail(b *batch, m *message, err error) (again bool) {
	examined := c.judges.Examined(handlers.Patience, err)
	j, wrong := handlers.Ask(&c.judges, handlers.Patience, func() judged { return c.judge(examined) })
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
	b.wait = max(b.wait, min(j.after, c.relay.options.MaxRetryDelay))
	return true
}

// giveUp makes a dead letter of m, with all attempts that this process has counted.
func (c *carrier) giveUp(m *message, reason string, err error) {
	m.Attempt += c.failures.tried(m.ID)
	m.die(reason, err)
}
