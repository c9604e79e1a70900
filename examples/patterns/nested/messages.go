package nested

// ShipOrder starts the shipment of an order, in parcels.
type ShipOrder struct {
	Order   string   `json:"order"`
	Parcels []string `json:"parcels"`
}

// ShipParcel starts a parcel. Its answer, at the end, is ParcelEnded.
type ShipParcel struct {
	Parcel string `json:"parcel"`
}
type ParcelEnded struct {
	Parcel    string `json:"parcel"`
	Delivered bool   `json:"delivered"`
}

// StopParcel ends a parcel whose shipment no longer waits for it.
type StopParcel struct {
	Parcel string `json:"parcel"`
}

// ParcelDelivered and ParcelReturned come from the carrier.
type ParcelDelivered struct {
	Parcel string `json:"parcel"`
}
type ParcelReturned struct {
	Parcel string `json:"parcel"`
}

// OrderShipped is the end.
type OrderShipped struct {
	Order string   `json:"order"`
	Lost  []string `json:"lost"`
}

// Late is the timeout of a shipment.
type Late struct{}

func (ShipOrder) Kind() string       { return "order.ship" }
func (ShipParcel) Kind() string      { return "parcel.ship" }
func (ParcelEnded) Kind() string     { return "parcel.ended" }
func (StopParcel) Kind() string      { return "parcel.stop" }
func (ParcelDelivered) Kind() string { return "parcel.delivered" }
func (ParcelReturned) Kind() string  { return "parcel.returned" }
func (OrderShipped) Kind() string    { return "order.shipped" }
func (Late) Kind() string            { return "order.late" }
