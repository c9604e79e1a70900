package recoverability_test

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

var (
	errCardRefused = errors.New("card refused")
	errClosedDay   = errors.New("closed on Sundays")
	errPassword    = errors.New("the password has expired")
)

// The policies of docs/operate/recoverability.md, which a test compares with this file.
func Example_page() {
	// page policies
	policy, err := recoverability.Choose(recoverability.Default, // for all other failures
		recoverability.Unrecoverable(errCardRefused), // a dead letter on its first attempt
		// a network that is down comes back in its own time
		recoverability.OnErrorAs[*net.OpError](recoverability.Retries{
			Delayed: 20, Step: time.Second, Growth: recoverability.Exponential, Max: 5 * time.Minute,
			Jitter: recoverability.Full,
		}),
		recoverability.OnError(errPassword, recoverability.Always(
			recoverability.PauseEndpoint("renew the password of the card service"))),
		recoverability.OnKind("order.remind", recoverability.Retries{}), // one attempt: a lost reminder does no harm
		recoverability.When(func(f recoverability.Failure) bool {
			return errors.Is(f.Err, errClosedDay) && f.Info.Attempt == 1
		}, recoverability.Always(recoverability.RetryIn(24*time.Hour))),
	)
	// end
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []recoverability.Failure{
		{Err: fmt.Errorf("charge: %w", errCardRefused)}, {Err: &net.OpError{Op: "dial", Err: errors.New("refused")}},
		{Err: errPassword},
		{Err: errors.New("x"), Info: saga.Info{Kind: "order.remind"}}, {Err: errClosedDay, Info: saga.Info{Attempt: 1}},
		{Err: errors.New("x")},
	} {
		fmt.Println(recoverability.Resolve(policy, f).Action)
	}
	// Output:
	// dead letter
	// retry in
	// pause the endpoint
	// dead letter
	// retry in
	// retry now
}

func Example_backoff() {
	// page backoff
	patient := recoverability.Backoff(func() backoff.BackOff {
		return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second),
			backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(6*time.Hour))
	})
	// end
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, hours := range []time.Duration{5, 6} {
		f := recoverability.Failure{Err: errors.New("x"), Info: saga.Info{Attempt: 300}, First: begun,
			Now: begun.Add(hours * time.Hour)}
		fmt.Println(recoverability.Resolve(patient, f).Action)
	}
	// Output:
	// retry in
	// dead letter
}

func Example_conflicts() {
	// page conflicts
	hot, err := recoverability.Retries{Delayed: 1000, Step: time.Second, Max: time.Minute,
		Jitter: recoverability.Full}.Policy()
	conflicts := recoverability.Within(6*time.Hour, recoverability.CountConflicts(hot),
		recoverability.Always(recoverability.CountAsFailure()))
	// end
	if err != nil {
		fmt.Println(err)
		return
	}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, hours := range []time.Duration{5, 6} {
		f := recoverability.Failure{Conflicts: 40, First: begun, Now: begun.Add(hours * time.Hour)}
		fmt.Println(recoverability.ResolveConflict(conflicts, f).Action)
	}
	// Output:
	// retry in
	// count as a failure
}

func Example_budget() {
	// page budget
	policy, err := recoverability.Budget{Share: 0.1, PerSecond: 10, Burst: 1000, Delay: 5 * time.Second}.Limit(
		recoverability.Default)
	// end
	if err != nil {
		fmt.Println(err)
		return
	}
	retries := map[recoverability.Action]int{}
	for range 1500 {
		retries[recoverability.Resolve(policy,
			recoverability.Failure{Err: errors.New("x"), Info: saga.Info{Attempt: 1}}).Action]++
	}
	fmt.Println(retries[recoverability.ActionRetryNow], "at once,", retries[recoverability.ActionRetryIn], "later")
	// Output:
	// 1000 at once, 500 later
}
