// page shop

package main

import (
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
)

// shop returns the endpoints of the shop.
func shop(b *bus.Bus) ([]edda.Runner, error) {
	orders, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{}, bus.Saga(Orders))
	if err != nil {
		return nil, err
	}
	return []edda.Runner{orders}, nil
}

// end
