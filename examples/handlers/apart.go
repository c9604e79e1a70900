package handlers

import (
	"errors"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
)

// page apart

// apart returns an endpoint for each handler. Each gets a copy of the event.
func apart(b *bus.Bus) ([]edda.Runner, error) {
	warehouse, err1 := bus.NewEndpoint(b, "warehouse", bus.EndpointOptions{}, bus.HandleTx(reserve))
	letters, err2 := bus.NewEndpoint(b, "letters", bus.EndpointOptions{}, bus.HandleTx(write))
	return []edda.Runner{warehouse, letters}, errors.Join(err1, err2)
}

// end
