package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// A run that the other side has taken is active until that reports how it ended, however often it reports it.
func TestRunEndsWhenTheOtherSideSaysSo(t *testing.T) {
	overBoth(t, time.Hour, func(w side) {
		id := w.trigger()
		s, info := w.next(), w.runInfo(id)
		if s.ID != id || s.Attempt != 1 || s.key != id.String() || s.body != `{"Month":"may"}` ||
			s.Manifest != "reports" || !s.Due.Equal(info.Due) {
			w.Errorf("%+v, want a submission of %+v", s, info)
		}
		w.untilDone()
		if got := w.state(id); got != scheduler.RunActive {
			w.Errorf("the run is %s before its end", got)
		}
		if err := w.client.Beat(w.Context(), s.Run); err != nil {
			w.Error(err)
		}
		for range 2 { // the first answer may be lost
			if err := w.client.End(w.Context(), s.Run, nil); err != nil {
				w.Error(err)
			}
		}
		w.untilState(id, scheduler.RunSucceeded)
		if !w.answers {
			return
		}
		if err := w.client.Beat(w.Context(), s.Run); !errors.Is(err, remote.ErrOver) {
			w.Errorf("a beat after the end: %v", err)
		}
		if err := w.client.End(w.Context(), s.Run, errors.New("no")); !errors.Is(err, remote.ErrOver) {
			w.Errorf("another end: %v", err)
		}
	})
}

// A failure is tried again by the rules of the manifest, under the same key; one that is permanent is not. The broker
// drops a message with a UUID that it knows, and still has the second attempt.
func TestFailureOfTheOtherSideIsTriedAgain(t *testing.T) {
	overBoth(t, time.Hour, func(w side) {
		id := w.trigger()
		first := w.next()
		w.untilBeating(id)
		if err := w.client.End(w.Context(), first.Run, errors.New("the printer is on fire")); err != nil {
			w.Error(err)
		}
		second := w.next()
		if second.ID != id || second.Attempt != 2 || second.key != first.key {
			w.Errorf("%+v after %+v", second, first)
		}
		w.untilBeating(id)
		if err := w.client.End(w.Context(), second.Run, saga.Permanent(errors.New("no such month"))); err != nil {
			w.Error(err)
		}
		w.untilState(id, scheduler.RunDead)
		if info := w.runInfo(id); !strings.Contains(info.Error, "no such month") {
			w.Errorf("%+v", info)
		}
	})
}

// A silent run is submitted again, and a report of the side that had it before changes nothing. Over HTTP that side is
// told so. The test may be slower than a second, too, and then loses the second attempt.
func TestSilentRunIsSubmittedAgain(t *testing.T) {
	overBoth(t, time.Second, func(w side) {
		id := w.trigger()
		first := w.next()
		for attempt := 2; w.state(id) != scheduler.RunSucceeded; attempt++ {
			again := w.next()
			if again.ID != id || again.Attempt < attempt {
				w.Fatalf("%+v after %+v", again, first)
			}
			if err := w.client.End(w.Context(), first.Run, errors.New("too late")); w.answers != errors.Is(err,
				remote.ErrOver) || !w.answers && err != nil {
				w.Errorf("the end of a lost attempt: %v", err)
			}
			if err := w.client.End(w.Context(), again.Run, nil); err != nil && !errors.Is(err, remote.ErrOver) {
				w.Error(err)
			}
			w.until("the run has ended, or is sent again", func() bool {
				info := w.runInfo(id)
				return info.State == scheduler.RunSucceeded || info.Attempt > again.Attempt
			})
		}
	})
}

// Work gives signs of life for as long as it works, and reports how it ended, also if it panicked.
func TestWorkKeepsTheRun(t *testing.T) {
	overBoth(t, time.Hour, func(w side) {
		id := w.trigger()
		s := w.next()
		w.untilBeating(id)
		if err := w.client.Work(w.Context(), s.Run, 50*time.Millisecond, func(ctx context.Context) error {
			for range 3 {
				w.untilBeatsAgain(id)
			}
			return ctx.Err()
		}); err != nil {
			w.Error(err)
		}
		w.untilState(id, scheduler.RunSucceeded)
		if info := w.runInfo(id); info.Attempt != 1 {
			w.Errorf("%+v", info)
		}
		w.trigger()
		s = w.next()
		oops := func(context.Context) error { panic("oops") }
		if err := w.client.Work(w.Context(), s.Run, time.Minute, oops); err != nil {
			w.Error(err)
		}
		if again := w.next(); again.ID != s.ID || again.Attempt != 2 {
			w.Errorf("%+v after a panic of %+v", again, s)
		}
	})
}
