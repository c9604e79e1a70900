package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// The examples of dead letters share a Postgres, and an endpoint whose first two messages became dead letters.

type ChargeCard struct {
	Order string `json:"order"`
}

func (ChargeCard) Kind() string { return "card.charge" }

func openBank() (ctx context.Context, o *operate.Operator, charged chan string, end func()) {
	ctx, pool, drop := pgtest.Example()
	dead, charged := make(chan struct{}, 2), make(chan string, 2)
	b, err := bus.New(pool, bus.Options{Logger: slog.New(slog.DiscardHandler), Events: func(e event.Event) {
		if _, ok := e.(event.DeadLettered); ok {
			dead <- struct{}{}
		}
	}})
	check(err)
	var up atomic.Bool
	charge := func(_ *bus.Context, m ChargeCard) error {
		if !up.Load() {
			return saga.Permanent(errors.New("the bank is down"))
		}
		charged <- m.Order
		return nil
	}
	bank, err := bus.NewEndpoint(b, "bank", bus.EndpointOptions{Concurrency: 1}, bus.Handle(charge))
	check(err)
	stop := pgtest.Start(ctx, bank)
	for _, order := range []string{"7", "8"} {
		_, err = b.Send(ctx, ChargeCard{Order: order})
		check(err)
		<-dead
	}
	up.Store(true)
	o, err = operate.New(pool, operate.Options{})
	check(err)
	return ctx, o, charged, func() {
		stop()
		drop()
	}
}

// All dead letters of an endpoint are retried, ten per second. After a crash, call RunJob with the job's number again.
func ExampleDeadLetters_NewJob() {
	ctx, operator, charged, end := openBank() // with two dead letters of the endpoint "bank"
	defer end()
	letters := operator.DeadLetters()
	number, err := letters.NewJob(ctx, recoverability.Job{Action: recoverability.JobRetry, Rate: 10,
		Filter: recoverability.LetterFilter{Endpoint: "bank"}})
	check(err)
	job, err := letters.RunJob(ctx, number, nil)
	check(err)
	fmt.Println("retried:", job.Ended)
	fmt.Println("charged:", len(<-charged)+len(<-charged))
	// Output:
	// retried: 2
	// charged: 2
}

// A dead letter, shown with its error, is put back into the queue where it failed.
func ExampleDeadLetters_Retry() {
	ctx, operator, charged, end := openBank()
	defer end()
	letters := operator.DeadLetters()
	first, err := letters.List(ctx, recoverability.LetterFilter{Endpoint: "bank", Limit: 1})
	check(err)
	letter, err := letters.Show(ctx, first[0].Number) // a list has no bodies
	check(err)
	fmt.Println(letter.Kind, string(letter.Body), letter.Error)
	check(letters.Retry(ctx, letter.Number))
	fmt.Println("charged:", <-charged)
	// Output:
	// card.charge {"order":"7"} the bank is down
	// charged: 7
}

// Dead letters with the same cause are one group.
func ExampleDeadLetters_Groups() {
	ctx, operator, _, end := openBank()
	defer end()
	groups, _, err := operator.DeadLetters().Groups(ctx, recoverability.GroupFilter{Endpoint: "bank"})
	check(err)
	for _, g := range groups {
		fmt.Println(g.Kind, g.Reason, g.Count)
	}
	// Output: card.charge permanent 2
}
