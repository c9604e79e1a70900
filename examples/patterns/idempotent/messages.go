package idempotent

// PlaceOrder is the body of a request, and the message that follows from it.
type PlaceOrder struct {
	Order string `json:"order"` // the shop gives it
	Cents int    `json:"cents"`
}

func (PlaceOrder) Kind() string { return "order.place" }
