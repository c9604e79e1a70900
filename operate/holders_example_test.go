package operate_test

import (
	"fmt"

	"github.com/edda-go/edda/limit"
	"github.com/edda-go/edda/operate"
)

// The holders of a limit.
func ExampleLimits_Holders() {
	ctx, pool, end := openPool()
	defer end()
	limits, err := limit.New(pool, limit.Options{})
	check(err)
	slot, err := limits.Acquire(ctx, "exports", 3)
	check(err)
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	held, err := operator.Limits().Holders(ctx, "named/exports")
	check(err)
	for _, h := range held {
		fmt.Println("slot", h.Slot, "of", h.Limit, "is held: its process", h.Does)
	}
	check(slot.Release())
	// Output: slot 1 of named/exports is held: its process runs code of its program
}
