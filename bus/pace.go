package bus

import (
	"context"
	"time"
)

// atOnce is how many handlers may run now: what is set for the endpoint, and one while nothing succeeds. The caller
// holds mu.
func (l *leased) atOnce() int {
	if l.brake.slow.Load() {
		return min(l.most, 1)
	}
	return l.most
}

// followKnobs does for a leased endpoint what a crew does for the others: it has as many handlers as are set, and tells
// of a pause when no claim is on its way any more.
func (l *leased) followKnobs(ctx context.Context) error {
	for {
		changed := l.knobs.changed()
		now := l.knobs.now()
		l.mu.Lock()
		l.most = l.knobs.workers(now)
		l.mu.Unlock()
		l.start(nil) // there may be room for what waits
		signal(l.room)
		l.pump.wake()
		if now.Paused {
			l.claiming.Lock()
			//nolint:staticcheck // an empty section: whoever was in it has left
			l.claiming.Unlock()
		}
		l.sayKnob(now)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// failing notes what a finish did to the pace, and after which failures to wait before the next message is tried.
func (l *leased) failing(r report) {
	l.pace(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastFailed = r.done == 0 && r.failures > 0
}

// calm waits, while nothing succeeds, before another message is tried. It returns false when ctx has ended.
func (l *leased) calm(ctx context.Context) bool {
	l.mu.Lock()
	wait := l.lastFailed && l.brake.slow.Load()
	l.lastFailed = false
	l.mu.Unlock()
	if !wait {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(l.brake.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.brake.ended():
	case <-ctx.Done():
		return false
	}
	return true
}
