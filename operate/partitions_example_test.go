package operate_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
)

// An endpoint without partitions gets four of them, while no process runs it.
func ExampleEndpoints_SetPartitions() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "books", "card.charge"))
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	before, moved, err := operator.Endpoints().SetPartitions(ctx, "books", 4)
	check(err)
	fmt.Println("partitions before:", before, "moved messages:", moved)
	// Output: partitions before: 0 moved messages: 0
}
