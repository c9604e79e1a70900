package main

// PlaceOrder starts the saga of an order.
type PlaceOrder struct {
	Order string
	Item  string
	Cents int64
}

// ChargeCard requests a charge from the bank. The answer is CardCharged or CardRefused.
type ChargeCard struct {
	Order string
	Cents int64
}

// CardCharged answers ChargeCard.
type CardCharged struct{ Order string }

// CardRefused answers ChargeCard.
type CardRefused struct{ Order string }

// PackOrder requests a parcel from the warehouse. The answer is OrderPacked.
type PackOrder struct{ Order string }

// OrderPacked answers PackOrder.
type OrderPacked struct{ Order string }

// BookOutcome has the shop write down how the order ended. The answer is OutcomeBooked.
type BookOutcome struct {
	Order   string
	Outcome string
}

// OutcomeBooked answers BookOutcome.
type OutcomeBooked struct{ Order string }

// Kind names the message.
func (PlaceOrder) Kind() string { return "web.order.place" }

// Kind names the message.
func (ChargeCard) Kind() string { return "web.card.charge" }

// Kind names the message.
func (CardCharged) Kind() string { return "web.card.charged" }

// Kind names the message.
func (CardRefused) Kind() string { return "web.card.refused" }

// Kind names the message.
func (PackOrder) Kind() string { return "web.order.pack" }

// Kind names the message.
func (OrderPacked) Kind() string { return "web.order.packed" }

// Kind names the message.
func (BookOutcome) Kind() string { return "web.outcome.book" }

// Kind names the message.
func (OutcomeBooked) Kind() string { return "web.outcome.booked" }
