package flow_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/flow"
)

// The part that the example leaves out: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// The map of the kinds that endpoints send to each other, by the history and by the subscriptions.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	reader, err := flow.New(pool, "")
	check(err)
	m, err := reader.Map(ctx)
	check(err)
	for _, e := range m.Edges {
		fmt.Println(e.Kind, "goes to", e.To, "seen:", e.Seen)
	}
	// Output: card.charge goes to bank seen: 0
}
