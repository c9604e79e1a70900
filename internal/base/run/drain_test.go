package run_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/internal/base/run"
)

func TestDrainCancelsOnlyWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		work, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		go run.Drain(ctx, work, 30*time.Second, cancel)
		_ = run.Sleep(t.Context(), time.Minute) // nothing happens before the end of ctx
		stop()
		<-work.Done()
		if d := time.Since(begin) - time.Minute; d != 30*time.Second || !errors.Is(context.Cause(work), run.ErrDrain) {
			t.Errorf("cancelled after %v because of %v", d, context.Cause(work))
		}
	})
}
