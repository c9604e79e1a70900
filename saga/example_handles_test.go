package saga_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
)

type (
	OpenCart struct{ Cart string }
	PutIn    struct{ Cart, Item string }
)

func (OpenCart) Kind() string { return "cart.open" }
func (PutIn) Kind() string    { return "cart.put-in" }

type Cart struct{ Items []string }

func (c *Cart) Open(*saga.Context, OpenCart) error { return nil }

func (c *Cart) PutIn(ctx *saga.Context, m PutIn) error {
	c.Items = append(c.Items, m.Item)
	fmt.Println("cart", ctx.Key(), "has", c.Items)
	return nil
}

// A message finds its instance by a key. StartedBy starts an instance if the key has none; Handles does not.
func ExampleHandles() {
	carts := saga.Define("cart", saga.Options{},
		saga.StartedBy(func(m OpenCart) string { return m.Cart }, (*Cart).Open),
		saga.Handles(func(m PutIn) string { return m.Cart }, (*Cart).PutIn))

	ctx, b, end := inMemory(carts) // an endpoint, see package memory
	defer end()
	for _, m := range []saga.Message{OpenCart{"7"}, PutIn{"7", "bread"}, PutIn{"7", "salt"}, PutIn{"8", "honey"}} {
		_, err := b.Send(ctx, m)
		check(err)
		check(b.Advance(ctx, time.Minute))
	}
	for _, d := range b.Discarded() {
		fmt.Println(d.Kind, "is discarded:", d.Reason) // saga.IfMissing changes that
	}
	// Output:
	// cart 7 has [bread]
	// cart 7 has [bread salt]
	// cart.put-in is discarded: no instance
}
