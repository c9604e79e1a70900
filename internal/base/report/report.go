package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/saga"
)

// Most is how many bytes a report may have.
const Most = 64 << 10

// Report is how an attempt of a run ended.
type Report struct {
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// The outcomes of a report.
const (
	succeeded = "succeeded"
	failed    = "failed" // tried again while the manifest has retries
	dead      = "dead"   // never tried again
)

// Of is the report on an attempt that ended with failure; nil is success.
func Of(failure error) Report {
	if failure == nil {
		return Report{Outcome: succeeded}
	}
	r := Report{Outcome: failed, Error: failure.Error()}
	if permanent := (*saga.PermanentError)(nil); errors.As(failure, &permanent) {
		r.Outcome = dead
	}
	r.Error = r.Error[:min(len(r.Error), Most/8)] // as JSON a byte may be six
	return r
}

// Failure is the inverse of Of. ok is false for a report that is none.
func (r Report) Failure() (failure error, ok bool) {
	switch {
	case r.Outcome == succeeded && r.Error == "":
		return nil, true
	case r.Outcome == failed:
		return errors.New(r.Error), true
	case r.Outcome == dead:
		return saga.Permanent(errors.New(r.Error)), true
	}
	return nil, false
}

// Insist calls once until it returns nil or an error of backoff.Permanent, with pauses that grow to about half a
// minute, or until ctx ends. A permanent error is returned also when ctx has ended meanwhile; otherwise the end of ctx
// comes with the last error of once. A call of once that does not return holds Insist up.
func Insist(ctx context.Context, log *slog.Logger, run saga.ID, attempt int, once func() error) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0))
	last := error(nil)
	try := func() error {
		last = once()
		return last
	}
	err := backoff.RetryNotify(try, backoff.WithContext(pauses, ctx), func(err error, pause time.Duration) {
		log.Warn("edda: the end of a run was not taken", "run", run, "attempt", attempt, "error", err,
			"again_in", pause)
	})
	permanent := (*backoff.PermanentError)(nil)
	if err == nil || errors.As(last, &permanent) || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), last)
}
