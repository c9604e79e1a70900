package bus_test

import (
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

type orderPaid struct{ ID string }

func (orderPaid) Kind() string { return "order.paid" }

// The parts of docs/guide/handlers.md.
func ExampleNewEndpoint_severalHandlers() {
	reserve := func(*bus.Context, pgx.Tx, orderPaid) error { return nil }
	count, write := reserve, reserve
	apart := func(b *bus.Bus) (warehouse, letters *bus.Endpoint, err error) {
		// page apart
		warehouse, err = bus.NewEndpoint(b, "warehouse", bus.EndpointOptions{}, bus.HandleTx(reserve))
		if err != nil {
			return nil, nil, err
		}
		letters, err = bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.HandleTx(write))
		// end
		return warehouse, letters, err
	}
	together := func(b *bus.Bus) (*bus.Endpoint, error) {
		// page together
		return bus.NewEndpoint(b, "warehouse", bus.EndpointOptions{}, bus.HandleTx(inOrder(reserve, count)))
		// end
	}
	_, _ = apart, together
	// Output:
}

// page order
func inOrder[M saga.Message](handlers ...func(*bus.Context, pgx.Tx, M) error) func(*bus.Context, pgx.Tx, M) error {
	return func(ctx *bus.Context, tx pgx.Tx, m M) error {
		for _, handle := range handlers {
			if err := handle(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}
}

// end
