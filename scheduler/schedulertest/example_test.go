package schedulertest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/schedulertest"
)

// t replaces the *testing.T of a test, because an example has no *testing.T.
var t exampleT

type exampleT struct{ testing.TB }

func (exampleT) Helper()                   {}
func (exampleT) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (exampleT) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// A test of when a manifest fires, and of nights without a server.
func ExampleNew() {
	s := schedulertest.New(t, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), // t is the *testing.T of the test
		scheduler.Manifest{Name: "nightly", When: scheduler.Cron("30 2 * * *", "UTC"),
			Message: saga.Raw{Name: "settle"}})
	for _, f := range s.Advance(24 * time.Hour) {
		fmt.Println(f.Manifest, f.Due.Format(time.DateTime))
		s.Succeed(f)
	}
	s.Down(72 * time.Hour)
	fmt.Println("made up for:", len(s.Advance(0))) // only the last night, see scheduler.Misfire
	// Output:
	// nightly 2026-03-02 02:30:00
	// made up for: 1
}
