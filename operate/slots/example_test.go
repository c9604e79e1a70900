package slots_test

import (
	"fmt"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/limit"
	"github.com/edda-go/edda/operate/slots"
)

// The part that the example leaves out: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// The holders of a limit.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	limits, err := limit.New(pool, limit.Options{})
	check(err)
	slot, err := limits.Acquire(ctx, "exports", 3)
	check(err)
	reader, err := slots.New(pool, "")
	check(err)
	held, err := reader.Holders(ctx, "named/exports")
	check(err)
	for _, h := range held {
		fmt.Println("slot", h.Slot, "of", h.Limit, "is held for", h.Does)
	}
	check(slot.Release())
	// Output: slot 1 of named/exports is held for what its program does under it
}
