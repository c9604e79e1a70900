package memory

import "time"

// Timers returns how many timeouts of an endpoint could be cancelled.
func (b *Bus) Timers(endpoint string) (n int) {
	b.locked(func() { n = len(b.queues[endpoint].timers) })
	return n
}

// Given returns how many ids of callers the bus knows.
func (b *Bus) Given() (n int) {
	b.locked(func() { n = len(b.given) })
	return n
}

// Kept returns how many records of discarded messages the bus has.
func (b *Bus) Kept() (n int) {
	b.locked(func() { n = len(b.discarded.records) })
	return n
}

// Jump moves the clock of a bus that is not idle.
func (b *Bus) Jump(d time.Duration) {
	b.locked(func() { b.clock = b.clock.Add(d); b.change() })
}
