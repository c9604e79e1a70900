package handlers

import (
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// page together

// together returns an endpoint that reserves and counts, or does neither.
func together(b *bus.Bus) ([]edda.Runner, error) {
	both := inOrder(reserve, count)
	warehouse, err := bus.NewEndpoint(b, "warehouse", bus.EndpointOptions{}, bus.HandleTx(both))
	return []edda.Runner{warehouse}, err
}

// inOrder returns a handler that calls the handlers in order, and returns the first error.
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
