package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

// hold is one term. Its fields belong to the goroutine of Keeper.Run; only end is also called by the alarm.
type hold struct {
	*Keeper
	term     Term
	life     context.Context // of the function
	end      context.CancelCauseFunc
	returned chan error // the result of the function

	alarm   *time.Timer // ends life when trusted has passed, whatever the loop is waiting for
	trusted time.Time
	next    *time.Timer // when to renew
	retry   run.Pauses
	lost    bool // the row shows the end of the term
	stuck   bool // the function did not return in time
}

// hold runs the function, renews the term while it runs, and releases the lease after it has returned. since is when
// the winning bid was begun: the database counts from that moment at the earliest.
func (k *Keeper) hold(ctx context.Context, t Term, since time.Time) {
	trusted := since.Add(k.options.Lease - k.options.Margin)
	h := &hold{Keeper: k, term: t, returned: make(chan error, 1), trusted: trusted}
	h.retry = run.Pauses{First: k.options.Renew / 50, Most: k.options.Renew / 2}
	h.life, h.end = context.WithCancelCause(ctx)
	defer h.end(nil)
	if !time.Now().Before(h.trusted) { // the answer came so late that the term may be over
		h.release(ctx)
		return
	}
	h.alarm = time.AfterFunc(time.Until(h.trusted), h.doubt)
	defer h.alarm.Stop()
	h.next = time.NewTimer(time.Until(since.Add(k.options.Renew)))
	defer h.next.Stop()

	h.log.Info("edda: lease acquired", "holder", t.Holder, "epoch", t.Epoch)
	k.health.acquired(t, h.trusted)
	group := run.NewGroup(context.WithoutCancel(ctx))
	group.Go(func(context.Context) error {
		err := run.ErrExited
		run.Call(func() { err = k.job.Run(h.life, t) })
		h.returned <- err
		return nil
	})
	err := h.watch(ctx)
	_ = group.Wait() // its member has returned, and has no error
	if err != nil && !h.endedBy(err) {
		h.log.Warn("edda: the function under a lease failed", "holder", t.Holder, "epoch", t.Epoch, "error", err)
	}
	k.health.ended(!h.lost && h.release(ctx))
}

// endedBy reports whether err only reports the end of the function's context.
func (h *hold) endedBy(err error) bool {
	end := h.life.Err()
	return end != nil && (errors.Is(err, end) || errors.Is(err, context.Cause(h.life)))
}

func (h *hold) doubt() {
	h.end(fmt.Errorf("%w: no renewal succeeded within %v", ErrLost, h.options.Lease-h.options.Margin))
}

// watch renews until the function has returned. It never returns earlier, so that the lease is not released while the
// function may still be working.
func (h *hold) watch(ctx context.Context) error {
	var stop <-chan time.Time
	life := h.life.Done()
	for {
		select {
		case err := <-h.returned:
			return err
		case <-life:
			life, stop = nil, time.After(h.options.Stop)
			h.health.update(func(now *Health) { now.State = Stopping })
			h.log.Info("edda: the function under a lease must stop", "holder", h.term.Holder, "epoch", h.term.Epoch,
				"cause", context.Cause(h.life)) //nolint:contextcheck // it reports the end of the term itself
		case <-stop:
			h.stuck = true
			h.log.Warn("edda: the function under a lease does not stop, the lease expires",
				"holder", h.term.Holder, "epoch", h.term.Epoch, "waited", h.options.Stop)
		case <-h.wakeups:
			h.renew(ctx)
		case <-h.next.C:
			h.renew(ctx)
		}
	}
}

// renew makes one attempt. If the outcome is unknown, it tries again soon, within the trusted time.
func (h *hold) renew(ctx context.Context) {
	began := time.Now()
	if h.lost || h.stuck || !began.Before(h.trusted) {
		return
	}
	attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(h.options.Renew, h.trusted.Sub(began)))
	defer cancel()
	answer, err := h.register.renew(attempt, h.term)
	pause := h.retry.After(err)
	switch {
	case err != nil:
		h.log.Debug("edda: the renewal of a lease had no answer", "epoch", h.term.Epoch, "error", err, "again_in",
			pause)
		h.next.Reset(pause)
	case answer == Lost:
		h.lost = true
		h.log.Info("edda: lease lost", "holder", h.term.Holder, "epoch", h.term.Epoch)
		h.end(ErrLost)
	default:
		h.extend(began)
		if answer == Resigning {
			h.end(ErrResigned)
		}
	}
}

// extend sets a new trusted time. An alarm that has gone off cannot be undone: the function's context has ended.
func (h *hold) extend(began time.Time) {
	h.next.Reset(time.Until(began.Add(run.Jitter(h.options.Renew * 4 / 5)))) // never later than Renew
	if !h.alarm.Stop() {
		return
	}
	h.trusted = began.Add(h.options.Lease - h.options.Margin)
	h.alarm.Reset(time.Until(h.trusted))
	h.health.update(func(now *Health) { now.Trusted = h.trusted })
	h.log.Debug("edda: lease renewed", "epoch", h.term.Epoch)
}

const (
	releaseTries   = 3
	releaseTimeout = 3 * time.Second
)

// release releases the lease, so that other processes can take it at once. If that fails they take it when it has
// expired. It reports whether the lease was this term's until then.
func (h *hold) release(ctx context.Context) (ours bool) {
	ctx = context.WithoutCancel(ctx) // after a shutdown this is all that is left to do
	var err error
	for range releaseTries {
		attempt, cancel := context.WithTimeout(ctx, releaseTimeout)
		ours, err = h.register.release(attempt, h.term)
		cancel()
		if err == nil {
			h.log.Info("edda: lease released", "holder", h.term.Holder, "epoch", h.term.Epoch, "was_ours", ours)
			return ours
		}
	}
	h.log.Warn("edda: the lease was not released, it expires by itself", "holder", h.term.Holder, "epoch", h.term.Epoch,
		"error", err)
	return false
}
