package run

import (
	"context"
	"errors"
	"time"
)

// ErrDrain says that a Run had to cancel work that did not end in time.
var ErrDrain = errors.New("handlers did not end in time and were cancelled")

// Drain cancels work with ErrDrain when it has not ended for d after ctx has. It returns when work is over.
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
