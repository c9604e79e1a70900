package nested

import (
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// page parent

const (
	arriveWithin = 7 * 24 * time.Hour
	remembered   = 7 * 24 * time.Hour // how long a late copy of ShipOrder ships nothing
)

// Shipment is the state of the saga that waits: the parcels that have not ended, and the lost ones.
type Shipment struct {
	Open []string `json:"open"`
	Lost []string `json:"lost"`
}

func (s *Shipment) begin(ctx *saga.Context, m ShipOrder) error {
	if !ctx.IsNew() {
		return nil
	}
	for _, name := range m.Parcels {
		parcel := ctx.Key() + "/" + name // so that no other shipment starts the same
		s.Open = append(s.Open, parcel)
		ctx.Send(ShipParcel{Parcel: parcel})
	}
	ctx.Timeout(arriveWithin, Late{})
	return s.endIfAllHave(ctx)
}

func (s *Shipment) ended(ctx *saga.Context, m ParcelEnded) error {
	at := slices.Index(s.Open, m.Parcel)
	if at < 0 {
		return nil // it has ended before
	}
	s.Open = slices.Delete(s.Open, at, at+1)
	if !m.Delivered {
		s.Lost = append(s.Lost, m.Parcel)
	}
	return s.endIfAllHave(ctx)
}

// late does not wait for the parcels to stop: the saga of a parcel may be broken.
func (s *Shipment) late(ctx *saga.Context, _ Late) error {
	for _, parcel := range s.Open {
		ctx.Send(StopParcel{Parcel: parcel})
	}
	s.Lost, s.Open = append(s.Lost, s.Open...), nil
	return s.endIfAllHave(ctx)
}

func (s *Shipment) endIfAllHave(ctx *saga.Context) error {
	if len(s.Open) == 0 {
		ctx.Publish(OrderShipped{Order: ctx.Key(), Lost: s.Lost})
		ctx.Complete()
	}
	return nil
}

// Shipments has an instance for each order that is not shipped.
var Shipments = saga.Define("shipment", saga.Options{Remember: remembered},
	saga.StartedBy(func(m ShipOrder) string { return m.Order }, (*Shipment).begin),
	saga.OnReply((*Shipment).ended),
	saga.OnTimeout((*Shipment).late))

// end
