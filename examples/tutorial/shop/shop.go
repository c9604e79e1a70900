package main

import (
	"errors"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
)

// shop returns the endpoints of the shop.
func shop(b *bus.Bus) ([]edda.Runner, error) {
	p := payments{bank: newBank()}
	orders, err1 := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	pays, err2 := bus.NewEndpoint(b, "payments", bus.EndpointOptions{}, bus.Handle(p.charge),
		bus.Handle(p.refund), bus.Accept(chargeFromV1))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err // every fault of the definitions, at once
	}
	return []edda.Runner{orders, pays}, nil
}
