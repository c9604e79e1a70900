package run

import (
	"context"
	"time"
)

// Woken is what ended a Wait.
type Woken uint8

// What ends a Wait.
const (
	Ended    Woken = iota // the context, whatever else happened at the same time
	TimedOut              // the time
	Nudged                // the signal
)

// Wait returns when ctx has ended, after d, or when signal delivers or is closed. A signal that is nil never comes.
func Wait(ctx context.Context, d time.Duration, signal <-chan struct{}) Woken {
	timer := time.NewTimer(d)
	defer timer.Stop()
	woken := Nudged
	select {
	case <-signal:
	case <-timer.C:
		woken = TimedOut
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return Ended
	}
	return woken
}

// UnlessOver returns err, or nil when ctx has ended: what fails then is no news.
func UnlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Sleep waits for d or for the end of ctx, whose cause it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	if Wait(ctx, d, nil) == Ended {
		return context.Cause(ctx)
	}
	return nil
}
