package main

// PlaceOrder starts an order.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// ChargeCard asks the payments for money, and CardCharged is the answer.
type ChargeCard struct {
	Cents int `json:"cents"`
}
type CardCharged struct {
	Cents   int    `json:"cents"`
	Receipt string `json:"receipt"` // of the bank
}

// RefundCard gives money back.
type RefundCard struct {
	Cents int `json:"cents"`
}

// CancelOrder takes an order back. A customer sends it.
type CancelOrder struct {
	Order string `json:"order"`
}

// PaymentDue and ShippingDue are messages that an order sends to itself, for later.
type PaymentDue struct{}
type ShippingDue struct{}

func (PlaceOrder) Kind() string  { return "order.place" }
func (CancelOrder) Kind() string { return "order.cancel" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (RefundCard) Kind() string  { return "card.refund" }
func (PaymentDue) Kind() string  { return "order.payment-due" }
func (ShippingDue) Kind() string { return "order.shipping-due" }
