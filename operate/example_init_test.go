package operate_test

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

var check, openPool = pgtest.Must, pgtest.Example

// The parts that the examples leave out: a Postgres with the tables of Edda, and a queue with two messages.
func openShop() (ctx context.Context, o *operate.Operator, end func()) {
	ctx, pool, end := pgtest.Example()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	for range 2 {
		_, err = b.Send(ctx, saga.Raw{Name: "card.charge", Body: []byte(`{}`)})
		check(err)
	}
	o, err = operate.New(pool, operate.Options{})
	check(err)
	return ctx, o, end
}
