package handlers

import (
	"errors"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// Shipment is the state of an order on its way.
type Shipment struct{}

func (s *Shipment) begin(ctx *saga.Context, m OrderPaid) error {
	ctx.Send(Ship{Order: m.Order})
	return nil
}

// Thanks is the state of a letter that is written later.
type Thanks struct {
	Written bool `json:"written"`
}

func (s *Thanks) begin(ctx *saga.Context, _ OrderPaid) error {
	ctx.Timeout(14*24*time.Hour, ThankYouDue{})
	return nil
}

func (s *Thanks) write(*saga.Context, ThankYouDue) error {
	s.Written = true
	return nil
}

// page sagas

func order(m OrderPaid) string { return m.Order }

var (
	shipments = saga.Define("shipment", saga.Options{}, saga.StartedBy(order, (*Shipment).begin))
	thanks    = saga.Define("thanks", saga.Options{}, saga.StartedBy(order, (*Thanks).begin),
		saga.OnTimeout((*Thanks).write))
)

// twoSagas returns an endpoint for each saga. Each payment starts an instance of both.
func twoSagas(b *bus.Bus) ([]edda.Runner, error) {
	shipping, err1 := bus.NewEndpoint(b, "shipping", bus.EndpointOptions{}, bus.Saga(shipments))
	care, err2 := bus.NewEndpoint(b, "customer-care", bus.EndpointOptions{}, bus.Saga(thanks))
	return []edda.Runner{shipping, care}, errors.Join(err1, err2)
}

// end
