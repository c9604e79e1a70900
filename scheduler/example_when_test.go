package scheduler_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// next prints the first due times of a manifest after noon on the Saturday before clocks change in Europe.
func next(when scheduler.When, n int, exclude ...scheduler.Exclusion) {
	m := scheduler.Manifest{Name: "report", When: when, Message: saga.Raw{Name: "report"}, Exclude: exclude}
	due, err := scheduler.Next(m, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), n)
	if err != nil {
		fmt.Println(err) //nolint:forbidigo // an example prints
		return
	}
	for _, t := range due {
		fmt.Println(t.Format("Mon 2 Jan 15:04:05 MST")) //nolint:forbidigo // an example prints
	}
}

func ExampleCron() {
	next(scheduler.Cron("30 2 * * *", "Europe/Berlin"), 3)
	next(scheduler.Cron("0 0 30 2 *", "UTC"), 1)
	// Output:
	// Sun 29 Mar 03:00:00 CEST
	// Mon 30 Mar 02:30:00 CEST
	// Tue 31 Mar 02:30:00 CEST
	// manifest report: When: Cron: expression "0 0 30 2 *" never fires
}

func ExampleEvery() {
	next(scheduler.Every(90*time.Second), 2)
	// Output:
	// Sat 28 Mar 12:01:30 UTC
	// Sat 28 Mar 12:03:00 UTC
}

func ExampleOnce() {
	next(scheduler.Once(time.Date(2026, 4, 1, 8, 0, 0, 0, time.UTC)), 2)
	// Output:
	// Wed 1 Apr 08:00:00 UTC
}

func ExampleAfter() {
	settle := scheduler.Manifest{Name: "settle", When: scheduler.Cron("0 2 * * *", "UTC"),
		Message: saga.Raw{Name: "settle"}}
	report := scheduler.Manifest{Name: "report", When: scheduler.After(settle.Name), Message: saga.Raw{Name: "report"}}
	due, err := scheduler.Next(report, time.Now(), 1)
	fmt.Println(len(due), err) // no clock decides when it is due
	// Output:
	// 0 <nil>
}

func ExampleExclusion() {
	next(scheduler.Cron("0 9,18 * * *", "Europe/Berlin"), 4,
		scheduler.Exclusion{Days: []time.Weekday{time.Saturday, time.Sunday}},
		scheduler.Exclusion{Of: scheduler.Window{Start: scheduler.TimeOfDay{Hour: 17},
			End: scheduler.TimeOfDay{Hour: 8}},
			From: time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)},
	)
	// Output:
	// Mon 30 Mar 09:00:00 CEST
	// Mon 30 Mar 18:00:00 CEST
	// Tue 31 Mar 09:00:00 CEST
	// Wed 1 Apr 09:00:00 CEST
}
