package memory

import "time"

// Timers returns the number of an endpoint's timeouts that could be cancelled.
func (b *Bus) Timers(endpoint string) (n int) {
	b.locked(func() { n = len(b.queues[endpoint].timers) })
	return n
}

// Given returns the number of callers' ids that the bus keeps.
func (b *Bus) Given() (n int) {
	b.locked(func() { n = len(b.given) })
	return n
}

// Kept returns the number of records of discarded messages that the bus keeps.
func (b *Bus) Kept() (n int) {
	b.locked(func() { n = len(b.discarded.records) })
	return n
}

// Jump moves the clock of a bus that is not idle.
func (b *Bus) Jump(d time.Duration) {
	b.locked(func() { b.clock = b.clock.Add(d); b.change() })
}
