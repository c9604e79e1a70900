package memory

import "time"

// Jump moves the clock of a bus that is not idle.
func (b *Bus) Jump(d time.Duration) {
	b.locked(func() { b.clock = b.clock.Add(d); b.change() })
}
