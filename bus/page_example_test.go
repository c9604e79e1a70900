package bus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
)

// What docs/operate/recoverability.md shows of the options and of the Go API. A test compares the two.
func Example_recoverability() {
	var (
		b                 *bus.Bus
		policy, conflicts recoverability.Policy
		part              bus.Part
	)
	use := func() error {
		// page options
		e, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{
			Policy:          policy,          // of failures
			MaxConflicts:    10,              // lost saves that cost nothing
			ConflictPolicy:  conflicts,       // and what then; nil is that the message has failed
			BreakerFailures: 100,             // failed attempts without a success, for at least BreakerPause
			BreakerPause:    1 * time.Second, // and between two tries after that
		}, part)
		// end
		if err == nil {
			err = e.Run(context.TODO())
		}
		return err
	}
	fmt.Println(use != nil)
	// Output: true
}

func Example_deadLetters() {
	var (
		ctx context.Context
		o   *operate.Operator
	)
	use := func() error {
		// page letters
		letters := o.DeadLetters()
		groups, _, err := letters.Groups(ctx, recoverability.GroupFilter{Endpoint: "orders"})
		if err != nil || len(groups) == 0 {
			return err
		}
		number, err := letters.NewJob(ctx, recoverability.Job{Action: recoverability.JobRetry, Rate: 10,
			Filter: recoverability.LetterFilter{Group: groups[0].Name}})
		if err != nil {
			return err
		}
		job, err := letters.RunJob(ctx, number, nil) // after a crash: once more, with the same number
		// end
		fmt.Println(job.Ended)
		return err
	}
	fmt.Println(use != nil)
	// Output: true
}
