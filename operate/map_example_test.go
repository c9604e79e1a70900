package operate_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
)

// The map of the kinds that endpoints send to each other, by the history and by the subscriptions.
func ExampleEndpoints_Map() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	m, err := operator.Endpoints().Map(ctx)
	check(err)
	for _, e := range m.Edges {
		fmt.Println(e.Kind, "goes to", e.To, "seen:", e.Seen)
	}
	// Output: card.charge goes to bank seen: 0
}
