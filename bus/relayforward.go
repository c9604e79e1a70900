package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
)

// ErrBehind is what a Forward returns for a message that it did not give to the other side, because one before it
// failed. It counts as no attempt.
var ErrBehind = errors.New("not tried, because a message before it failed")

// failing is what is known of a message that was tried in vain. It is in memory alone: a row is never updated, and
// whoever relays after this process begins to count anew.
type failing struct {
	attempts int
	first    time.Time // by the database's clock
	refused  int       // times that it failed right behind another that went through, see relaystuck.go
	alone    bool      // it is given to forward by itself, see relaysearch.go
}

func (r *relaying) triedBefore(m *message) int {
	if f := r.failing[m.ID]; f != nil {
		return f.attempts
	}
	return 0
}

// carry forwards what is undecided, and decides the fate of each message. What failed is left in the queue.
func (r *relaying) carry(life, ctx context.Context, b *relayed) {
	begun := time.Now()
	defer func() { b.took = time.Since(begun) }()
	messages := b.undecided()
	if len(messages) == 0 {
		return
	}
	through := r.pass(life, ctx, b, messages)
	if m := r.stuck(messages, through); m != nil && ctx.Err() == nil {
		r.tellStuck(life, ctx, b, m, through)
	}
}

// passFor is how long a turn goes on with further calls of forward before what went through is deleted.
const passFor = time.Second

// pass gives messages to forward, as many at a time as the search says, up to the first that is left. It reports
// whether one of them went through. After passFor, or when life has ended, the call that is on its way is the last.
func (r *relaying) pass(life, ctx context.Context, b *relayed, messages []*message) (through bool) {
	for begun := time.Now(); len(messages) > 0; {
		some := messages[:r.portion(messages)]
		went, whole := r.try(ctx, b, some)
		through = through || went
		if !whole {
			if slices.ContainsFunc(some, func(m *message) bool { return m.fate == fateLeft }) {
				return through
			}
			messages = messages[len(some):]
		}
		if ctx.Err() != nil || life.Err() != nil || time.Since(begun) > passFor {
			return through
		}
	}
	return through
}

// try forwards messages together. It reports whether one of them went through, and whether the call failed as a whole:
// then nothing is known about any of them, unless there is only one, whose failure it is.
func (r *relaying) try(ctx context.Context, b *relayed, messages []*message) (through, whole bool) {
	errs, wrong := r.give(ctx, messages)
	switch {
	case wrong == nil:
		r.search.passed(len(messages))
	case ctx.Err() != nil: // a shutdown is no failure of anybody
		return false, false
	case len(messages) > 1:
		r.search.failed(len(messages))
		r.tellWhole(ctx, len(messages), wrong)
		return false, true
	default:
		r.search.failed(1)
		errs = []error{wrong}
		defer r.isolate(messages[0])
	}
	return r.decide(ctx, b, messages, errs), false
}

// decide gives each message the fate that its error says. It reports whether one of them went through.
func (r *relaying) decide(ctx context.Context, b *relayed, messages []*message, errs []error) (through bool) {
	failed, ended := false, false
	for n, err := range errs {
		m := messages[n]
		switch {
		case err == nil:
			m.fate, through = fateDone, true
			delete(r.failing, m.ID)
		case ctx.Err() != nil: // a shutdown is no failure of anybody
		default:
			failed = r.fail(b, m, err) || failed
		}
		ended = ended || m.fate != fateLeft
	}
	if through {
		r.patience.Reset()
	}
	// all are behind nothing: it is no attempt, but asking again at once would spin
	if !failed && !ended && ctx.Err() == nil {
		messages[0].err, failed = errs[0], true
	}
	if failed {
		b.wait = max(b.wait, run.Jitter(r.patience.NextBackOff()))
	}
	return through
}

// give calls forward. It returns one error for each message, or what is wrong with the call.
func (r *relaying) give(ctx context.Context, messages []*message) (errs []error, wrong error) {
	deliveries := make([]*saga.Delivery, len(messages))
	for n, m := range messages {
		deliveries[n] = &m.delivery
	}
	wrong = errForwardExited
	run.Call(func() { errs, wrong = r.call(ctx, deliveries) })
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

var (
	errForwardExited = errors.New("forward ended its goroutine: runtime.Goexit, or FailNow of package testing")
	errJudgeExited   = errors.New("it ended its goroutine: runtime.Goexit, or FailNow of package testing")
)

// call is one call of a user's function, which may panic, or not return: then this process keeps the lease and relays
// nothing, and only the log can say why.
func (r *relaying) call(ctx context.Context, deliveries []*saga.Delivery) (errs []error, wrong error) {
	defer recovered(&wrong)
	silent := time.AfterFunc(r.options.Drain, func() { r.tellSilence(ctx, len(deliveries)) })
	defer silent.Stop()
	return r.forward(ctx, deliveries), nil
}

// judged is what an error of forward says.
type judged struct {
	behind    bool // nothing of its message
	discard   *saga.DiscardError
	permanent bool
	after     time.Duration
}

// judge reads an error. Its methods are the user's, and so is Permanent: when one of them panics, it is an error like
// any other.
func (r *relaying) judge(err error) (j judged, wrong error) {
	defer recovered(&wrong)
	var permanent *saga.PermanentError
	var after *saga.RetryAfterError
	switch {
	case errors.Is(err, ErrBehind):
		return judged{behind: true}, nil
	case errors.As(err, &j.discard):
		return j, nil
	case errors.As(err, &permanent) || r.options.Permanent(err):
		return judged{permanent: true}, nil
	case errors.As(err, &after):
		return judged{after: after.After}, nil
	}
	return judged{}, nil
}

// fail judges a failure. It tells whether m is to be tried again.
func (r *relaying) fail(b *relayed, m *message, err error) (again bool) {
	j, wrong := judged{}, errJudgeExited
	run.Call(func() { j, wrong = r.judge(err) })
	if j.behind {
		return false
	}
	if m.err = err; wrong != nil {
		j, m.err = judged{}, errors.Join(err, fmt.Errorf("RelayOptions.Permanent, or a method of the error: %w", wrong))
	}
	f := r.failing[m.ID]
	if f == nil {
		f = &failing{first: b.clock()}
		bounded(r.failing)
		r.failing[m.ID] = f
	}
	f.attempts++
	if m.FirstFailed.IsZero() {
		m.FirstFailed = f.first
	}
	switch {
	case j.discard != nil:
		m.drop(j.discard.Reason)
		return false
	case j.permanent:
		r.giveUp(m, "permanent", m.err)
		return false
	}
	b.wait = max(b.wait, min(j.after, r.options.RetryMost))
	return true
}

// giveUp makes a dead letter of m, with all attempts that this process knows of.
func (r *relaying) giveUp(m *message, reason string, err error) {
	m.Attempt += r.triedBefore(m)
	m.die(reason, err)
}
