package handlers

import (
	"errors"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// page chain

// reserveAndShip sends the next command. It goes out with the reservation, and not without it.
func reserveAndShip(ctx *bus.Context, tx pgx.Tx, m OrderPaid) error {
	ctx.Send(Ship{Order: m.Order})
	return reserve(ctx, tx, m)
}

// chain returns two endpoints. The second begins when the first has committed.
func chain(b *bus.Bus, ship func(*bus.Context, Ship) error) ([]edda.Runner, error) {
	warehouse, err1 := bus.NewEndpoint(b, "warehouse", bus.EndpointOptions{}, bus.HandleTx(reserveAndShip))
	shipping, err2 := bus.NewEndpoint(b, "shipping", bus.EndpointOptions{}, bus.Handle(ship))
	return []edda.Runner{warehouse, shipping}, errors.Join(err1, err2)
}

// end
