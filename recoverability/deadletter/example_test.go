package deadletter_test

import (
	"fmt"

	"github.com/edda-go/edda/recoverability/deadletter"
)

// All dead letters of an endpoint are retried, ten per second. After a crash, call RunJob with the job's number again.
func ExampleStore_NewJob() {
	ctx, pool, operator, charged, end := openBank() // with two dead letters of the endpoint "bank"
	defer end()
	letters := operator.DeadLetters()
	number, err := letters.NewJob(ctx, pool, deadletter.Job{Action: deadletter.ActionRetry, Rate: 10,
		Filter: deadletter.Filter{Endpoint: "bank"}})
	check(err)
	job, err := letters.RunJob(ctx, pool, operator, number, nil)
	check(err)
	fmt.Println("retried:", job.Ended)
	fmt.Println("charged:", len(<-charged)+len(<-charged))
	// Output:
	// retried: 2
	// charged: 2
}

// A dead letter, shown with its error, is put back into the queue where it failed.
func ExampleStore_Retry() {
	ctx, pool, operator, charged, end := openBank()
	defer end()
	letters := operator.DeadLetters()
	first, err := letters.List(ctx, pool, deadletter.Filter{Endpoint: "bank", Limit: 1})
	check(err)
	letter, err := letters.Show(ctx, pool, first[0].Number) // a list has no bodies
	check(err)
	fmt.Println(letter.Kind, string(letter.Body), letter.Error)
	check(letters.Retry(ctx, pool, operator, letter.Number))
	fmt.Println("charged:", <-charged)
	// Output:
	// card.charge {"order":"7"} the bank is down
	// charged: 7
}

// Dead letters with the same cause are one group.
func ExampleStore_Groups() {
	ctx, pool, operator, _, end := openBank()
	defer end()
	groups, _, err := operator.DeadLetters().Groups(ctx, pool, deadletter.GroupFilter{Endpoint: "bank"})
	check(err)
	for _, g := range groups {
		fmt.Println(g.Kind, g.Reason, g.Count)
	}
	// Output: card.charge permanent 2
}
