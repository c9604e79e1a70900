package partitions_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/partitions"
)

// The part that the example leaves out: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// An endpoint without partitions gets four of them, while no process runs it.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "books", "card.charge"))
	operator, err := partitions.New(pool, "")
	check(err)
	changed, err := operator.Set(ctx, "books", 4)
	check(err)
	fmt.Println("partitions:", changed.Before, "→", changed.After)
	// Output: partitions: 0 → 4
}
