package main

// Messages. Each has a kind, and is sent as JSON: keep kinds and tags, even if you rename the Go types and fields.

// PlaceOrder starts an order.
type PlaceOrder struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// ChargeCard requests money from the payments, and CardCharged is the answer.
type ChargeCard struct {
	Cents int `json:"cents"`
}
type CardCharged struct {
	Receipt string `json:"receipt"`
}

// PaymentDue arrives when an order has waited long enough.
type PaymentDue struct{}

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (PaymentDue) Kind() string  { return "order.payment-due" }
