package run

import (
	"context"
	"testing"
	"time"
)

// The watcher reads how long a call may take while the goroutine makes one call after another. The race detector fails
// this test if the goroutine sets that time for each call.
func TestTheTimeOfACallIsSetOnce(t *testing.T) {
	t.Parallel()
	calls, watching := &Calls{}, NewGroup(t.Context())
	done, stop := context.WithCancel(t.Context())
	defer stop()
	watching.Go(func(context.Context) error {
		for done.Err() == nil {
			calls.leaveLate(time.Hour, time.Hour, 1)
		}
		return nil
	})
	calls.Each(time.Minute, 10_000, func(h *Hand, _ int) {
		h.Enter("decode", [16]byte{}, time.Now()) // and no Return before the next call, as decoders do
	}, func(_ int, err error) { t.Error(err) })
	stop()
	if err := watching.Wait(); err != nil {
		t.Error(err)
	}
}
