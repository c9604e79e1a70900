package plan

import (
	"testing"
	"time"
)

// On the last day of leap years after 2037 Go's ZoneBounds returns the queried time as the end of the zone.
func TestCronOnTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Oslo", "America/New_York"} {
		for year := 2036; year < 2140; year += 4 {
			start := time.Date(year, 12, 29, 12, 0, 0, 0, time.UTC)
			times := compiled(t, Definition{Rule: cronRule("30 1 * * *", zone)}).Next(start, 5)
			if len(times) != 5 || times[4].Day() != 3 || times[2].Format(time.TimeOnly) != "01:30:00" {
				t.Errorf("%s in %d: %v", zone, year, times)
			}
		}
	}
}
