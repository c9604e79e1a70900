package saga_test

import (
	"fmt"

	"github.com/edda-go/edda/saga"
)

type Subscribe struct{ Reader string }

func (Subscribe) Kind() string { return "magazine.subscribe" }

// Subscription is the state of one reader's subscription.
type Subscription struct{ Issues int }

func (s *Subscription) Begin(*saga.Context, Subscribe) error {
	s.Issues = 12
	return nil
}

var (
	Subscriptions = saga.Define("subscription", saga.Options{},
		saga.StartedBy(func(m Subscribe) string { return m.Reader }, (*Subscription).Begin))
	subscriptions = saga.StatesOf[Subscription](Subscriptions) // for readers outside of its handlers
)

// A web handler reads the state of an instance as its type.
func ExampleStatesOf() {
	ctx, b, end := inMemory(Subscriptions) // a bus
	defer end()
	_, err := b.Send(ctx, Subscribe{Reader: "Ada"})
	check(err)
	check(b.Idle(ctx))

	for _, reader := range []string{"Ada", "Bob"} {
		s, ok, err := subscriptions.Read(ctx, b, reader)
		check(err)
		fmt.Println(reader, ok, s.Issues)
	}
	// Output:
	// Ada true 12
	// Bob false 0
}
