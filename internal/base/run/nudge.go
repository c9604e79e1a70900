package run

// Nudge signals one loop that something has happened. A nudge is kept until a loop waits for it, and several count as
// one, so the loop must then check what has happened. Receive from it to wait. The zero value is not usable.
type Nudge chan struct{}

// NewNudge returns a Nudge that was not sent yet.
func NewNudge() Nudge { return make(Nudge, 1) }

// Send never blocks.
func (n Nudge) Send() {
	select {
	case n <- struct{}{}:
	default:
	}
}

// Drop removes a nudge that was kept.
func (n Nudge) Drop() {
	select {
	case <-n:
	default:
	}
}
