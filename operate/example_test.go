package operate_test

import (
	"fmt"

	"github.com/edda-go/edda/operate"
)

// An operator needs a pool, and no handlers.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	check(operator.Queues().Install(ctx, "bank", "card.charge")) // an endpoint does that by itself
	queues, err := operator.Queues().List(ctx)
	check(err)
	for _, q := range queues {
		fmt.Println(q.Endpoint, q.Kinds, "waiting:", q.Ready)
	}
	// Output: bank [card.charge] waiting: 0
}

// A pause applies to every process, also to later ones. The audit keeps the actor and the reason.
func ExampleEndpoints_Pause() {
	ctx, operator, end := openShop() // with an endpoint "bank"
	defer end()
	ctx = operate.WithActor(ctx, operate.Actor{Name: "ann@example.com"})
	check(operator.Endpoints().Pause(ctx, "bank", "the bank is down"))
	all, err := operator.Endpoints().List(ctx)
	check(err)
	for _, e := range all {
		fmt.Println(e.Endpoint, "is paused by", e.PausedBy, "because", e.Reason)
	}
	check(operator.Endpoints().Resume(ctx, "bank"))
	// Output: bank is paused by ann@example.com because the bank is down
}

// At most two batches of an endpoint run at the same time, in all processes together.
func ExampleLimits_Set() {
	ctx, operator, end := openShop()
	defer end()
	check(operator.Limits().Set(ctx, "bank", 2))
	limit, err := operator.Limits().Get(ctx, "bank")
	check(err)
	fmt.Println("at most", limit.Limit, "now", limit.Held)
	// Output: at most 2 now 0
}

// An operator looks at the messages of a queue, and removes one.
func ExampleMessages_Cancel() {
	ctx, operator, end := openShop() // with two messages
	defer end()
	first, err := operator.Messages().Peek(ctx, "bank", operate.PeekOptions{Limit: 1})
	check(err)
	_, err = operator.Messages().Cancel(ctx, "bank", first[0].Info.ID, "sent by mistake")
	check(err)
	left, err := operator.Messages().Peek(ctx, "bank", operate.PeekOptions{})
	check(err)
	fmt.Println(first[0].Info.Kind, "is cancelled, left:", len(left))
	// Output: card.charge is cancelled, left: 1
}

// The state of a message, in a sentence for each endpoint that it was sent to.
func ExampleOperator_History() {
	ctx, operator, end := openShop()
	defer end()
	queued, err := operator.Messages().Peek(ctx, "bank", operate.PeekOptions{Limit: 1})
	check(err)
	m, err := operator.History().Message(ctx, queued[0].Info.ID)
	check(err)
	for _, place := range m.Places {
		fmt.Println(place.Endpoint, place.State)
	}
	// Output: bank waiting
}
