package run

import (
	"context"
	"errors"
	"time"
)

// ErrDrain means that a Run had to cancel work that did not end in time.
var ErrDrain = errors.New("handlers did not end in time and were cancelled")

// Drain cancels work with ErrDrain if it has not ended within d after ctx has. It returns when work has ended.
func Drain(ctx, work context.Context, d time.Duration, cancel context.CancelCauseFunc) {
	select {
	case <-work.Done():
		return
	case <-ctx.Done():
	}
	if Sleep(work, d) == nil {
		cancel(ErrDrain)
	}
}
