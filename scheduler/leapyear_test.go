package scheduler

import (
	"testing"
	"time"
)

// Go's ZoneBounds ends a zone at the very moment it is asked for on the last day of leap years after 2037.
func TestCronOnTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Oslo", "America/New_York"} {
		for year := 2036; year < 2140; year += 4 {
			m := Manifest{Name: "a", When: Cron("30 1 * * *", zone), Message: settle{}}
			times, err := Next(m, time.Date(year, 12, 29, 12, 0, 0, 0, time.UTC), 5)
			if err != nil || len(times) != 5 || times[4].Day() != 3 || times[2].Format(time.TimeOnly) != "01:30:00" {
				t.Errorf("%s in %d: %v, %v", zone, year, times, err)
			}
		}
	}
}
