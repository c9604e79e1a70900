package trade

import (
	"fmt"
	"time"
)

// Settings of a run. Each has a flag of "edda demo".
type Settings struct {
	Orders, Rate int           // how many, and how many a second
	PayWithin    time.Duration // how long an order waits for its money
	Within       time.Duration // how long all orders may take to end
	Pages        string        // where the pages listen
	Stay         bool          // serve the pages when all orders have ended
	Database     string        // a connection string; "" is DATABASE_URL, or else a server that is thrown away
}

// Check returns an error if a setting is wrong.
func (s Settings) Check() error {
	switch {
	case s.Orders < 1:
		return fmt.Errorf("--orders %d: want 1 or more", s.Orders)
	case s.Rate < ticks:
		return fmt.Errorf("--rate %d: want %d or more", s.Rate, ticks)
	case s.PayWithin < 100*time.Millisecond:
		return fmt.Errorf("--pay-within %v: want 100ms or more", s.PayWithin)
	case s.Within <= 0:
		return fmt.Errorf("--within %v: want more than 0", s.Within)
	}
	return nil
}
