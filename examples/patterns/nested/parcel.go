package nested

import "github.com/edda-go/edda/saga"

// page child

// Parcel is the state of a saga that the saga of a shipment has started.
type Parcel struct{}

func (p *Parcel) begin(*saga.Context, ShipParcel) error { return nil } // a real saga would call the carrier here

func (p *Parcel) delivered(ctx *saga.Context, _ ParcelDelivered) error { return p.end(ctx, true) }
func (p *Parcel) returned(ctx *saga.Context, _ ParcelReturned) error   { return p.end(ctx, false) }

// end answers the message that has started the parcel, days ago.
func (p *Parcel) end(ctx *saga.Context, delivered bool) error {
	ctx.ReplyToOriginator(ParcelEnded{Parcel: ctx.Key(), Delivered: delivered})
	ctx.Complete()
	return nil
}

func (p *Parcel) stop(ctx *saga.Context, _ StopParcel) error {
	ctx.Complete() // the shipment does not wait for the answer
	return nil
}

// Parcels has an instance for each parcel under way.
var Parcels = saga.Define("parcel", saga.Options{},
	saga.StartedBy(func(m ShipParcel) string { return m.Parcel }, (*Parcel).begin),
	saga.Handles(func(m ParcelDelivered) string { return m.Parcel }, (*Parcel).delivered),
	saga.Handles(func(m ParcelReturned) string { return m.Parcel }, (*Parcel).returned),
	saga.Handles(func(m StopParcel) string { return m.Parcel }, (*Parcel).stop))

// end
