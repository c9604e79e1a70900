package main

// Messages. Each has a kind, and is JSON on its way: kinds and tags stay as they are, whatever becomes of the Go names.

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
	Receipt string `json:"receipt"`
}

// PaymentDue comes when an order has waited long enough.
type PaymentDue struct{}

func (PlaceOrder) Kind() string  { return "order.place" }
func (ChargeCard) Kind() string  { return "card.charge" }
func (CardCharged) Kind() string { return "card.charged" }
func (PaymentDue) Kind() string  { return "order.payment-due" }
