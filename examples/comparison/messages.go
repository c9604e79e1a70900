package comparison

// PlaceOrder starts an order.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// ChargeCard requests a charge.
type ChargeCard struct {
	Cents int `json:"cents"`
}

// CardCharged answers ChargeCard.
type CardCharged struct{}

// PaymentDue is a timeout.
type PaymentDue struct{}

// OrderPaid is an event.
type OrderPaid struct {
	Order string `json:"order"`
}

// OrderCancelled is an event.
type OrderCancelled struct {
	Order string `json:"order"`
}

// Kind is the name of PlaceOrder.
func (PlaceOrder) Kind() string { return "order.place" }

// Kind is the name of ChargeCard.
func (ChargeCard) Kind() string { return "card.charge" }

// Kind is the name of CardCharged.
func (CardCharged) Kind() string { return "card.charged" }

// Kind is the name of PaymentDue.
func (PaymentDue) Kind() string { return "order.payment-due" }

// Kind is the name of OrderPaid.
func (OrderPaid) Kind() string { return "order.paid" }

// Kind is the name of OrderCancelled.
func (OrderCancelled) Kind() string { return "order.cancelled" }
