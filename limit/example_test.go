package limit_test

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/limit"
)

// At most three exports run at once, in all processes together. The others wait their turn.
func ExampleLimiter_Do() {
	ctx, pool, schema := openExports()
	defer closeExports()

	limits, err := limit.New(pool, limit.Options{Schema: schema})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = limits.Do(ctx, "exports", 3, func(ctx context.Context, s *limit.Slot) error {
		fmt.Println("this export is alone among three, and has the number", s.Epoch())
		return ctx.Err()
	})
	fmt.Println("ended:", err)

	// Output:
	// this export is alone among three, and has the number 1
	// ended: <nil>
}
