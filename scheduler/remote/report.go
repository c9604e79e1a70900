package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/saga"
)

// mostReport is how many bytes a report may have.
const mostReport = 64 << 10

// report is the outcome of an attempt of a run.
type report struct {
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
}

// Outcomes of a report.
const (
	succeeded = "succeeded"
	failed    = "failed" // tried again while the manifest has retries
	dead      = "dead"   // never tried again
)

// reportOf returns the report on an attempt that ended with failure; nil means success.
func reportOf(failure error) report {
	if failure == nil {
		return report{Outcome: succeeded}
	}
	r := report{Outcome: failed, Error: failure.Error()}
	if permanent := (*saga.PermanentError)(nil); errors.As(failure, &permanent) {
		r.Outcome = dead
	}
	r.Error = r.Error[:min(len(r.Error), mostReport/8)] // as JSON a byte may take six
	return r
}

// failure is the inverse of reportOf. ok is false if the report is not valid.
func (r report) failure() (failure error, ok bool) {
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

// insist calls once until it returns nil or an error of backoff.Permanent, with pauses that grow to about half a
// minute, or until ctx ends. It returns a permanent error even if ctx has ended by then; otherwise the end of ctx is
// returned with the last error of once. If a call of once does not return, insist does not return either.
func insist(ctx context.Context, log *slog.Logger, run saga.ID, attempt int, once func() error) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0))
	last := error(nil)
	try := func() error {
		last = once()
		return last
	}
	err := backoff.RetryNotify(try, backoff.WithContext(pauses, ctx), func(err error, pause time.Duration) {
		log.Warn("edda: the end of a run was not accepted", "run", run, "attempt", attempt, "error", err,
			"again_in", pause)
	})
	permanent := (*backoff.PermanentError)(nil)
	if err == nil || errors.As(last, &permanent) || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), last)
}

// strict reads a report from JSON. A name that the report does not have is an error.
func strict(from io.Reader, into any) error {
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	return decode(d, into)
}

// lenient is strict without that error: a program of another version may say more.
func lenient(from io.Reader, into any) error { return decode(json.NewDecoder(from), into) }

// decode reads one value, and nothing may follow it.
func decode(d *json.Decoder, into any) error {
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("a second value follows")
		}
		return fmt.Errorf("want one value: %w", err)
	}
	return nil
}
