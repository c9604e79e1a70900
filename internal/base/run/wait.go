package run

import (
	"context"
	"time"
)

// Woken is the reason for the end of a Wait.
type Woken uint8

// Reasons for the end of a Wait.
const (
	Ended    Woken = iota // the context, whatever else happened at the same time
	TimedOut              // the time
	Nudged                // the signal
)

// Wait returns when ctx has ended, after d, or when signal delivers or is closed. A nil signal never does.
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

// UnlessOver returns err, or nil if ctx has ended: errors after that are expected.
func UnlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Sleep waits for d or for the end of ctx, and then returns the cause of that end.
func Sleep(ctx context.Context, d time.Duration) error {
	if Wait(ctx, d, nil) == Ended {
		return context.Cause(ctx)
	}
	return nil
}
