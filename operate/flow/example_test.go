package flow_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/flow"
)

// What the example does not show: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// The map of which kinds go from where to where, as it was seen, and as it is subscribed.
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
