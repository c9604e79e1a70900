package main

// PlaceOrder starts an order.
type PlaceOrder struct {
	Order    string `json:"order"`
	Cents    int    `json:"cents"`
	Currency string `json:"currency,omitempty"` // new; "" is EUR, as older programs send it
}

// ChargeCard asks the payments for money. It has a new kind, because a program that does not know the currency must
// not handle it.
type ChargeCard struct {
	Cents    int    `json:"cents"`
	Currency string `json:"currency"`
}

// ChargeCardV1 is what older programs send.
type ChargeCardV1 struct {
	Cents int `json:"cents"`
}

// CardCharged is the answer.
type CardCharged struct {
	Cents    int    `json:"cents"`
	Currency string `json:"currency,omitempty"` // new; "" is EUR
	Receipt  string `json:"receipt"`            // of the bank
}

// RefundCard gives money back.
type RefundCard struct {
	Cents    int    `json:"cents"`
	Currency string `json:"currency,omitempty"` // new; "" is EUR
}

// CancelOrder takes an order back. A customer sends it.
type CancelOrder struct {
	Order string `json:"order"`
}

// PaymentDue and ShippingDue are messages that an order sends to itself, for later.
type PaymentDue struct{}
type ShippingDue struct{}

func (PlaceOrder) Kind() string   { return "order.place" }
func (CancelOrder) Kind() string  { return "order.cancel" }
func (ChargeCard) Kind() string   { return "card.charge.v2" }
func (ChargeCardV1) Kind() string { return "card.charge" }
func (CardCharged) Kind() string  { return "card.charged" }
func (RefundCard) Kind() string   { return "card.refund" }
func (PaymentDue) Kind() string   { return "order.payment-due" }
func (ShippingDue) Kind() string  { return "order.shipping-due" }
