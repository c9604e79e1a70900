package limit_test

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/limit"
)

// A Limiter of a program. Acquire returns a slot until Release, for work that does not fit into the function of a Do.
func ExampleNew() {
	ctx, pool, schema := openExports()
	defer closeExports()

	limits, err := limit.New(pool, limit.Options{Schema: schema})
	if err != nil {
		fmt.Println(err)
		return
	}
	slot, err := limits.Acquire(ctx, "nightly", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = limits.TryAcquire(ctx, "nightly", 1) // here, or in any other process
	fmt.Println("full:", errors.Is(err, limit.ErrFull))
	fmt.Println("released:", slot.Release())
	// Output:
	// full: true
	// released: <nil>
}
