package contract

// The topics. A topic has the name of the endpoint that its messages are for, or of the subject of its events. In the
// database of the sender a relay has that name, in the database of the receiver an intake reads it.
const (
	Orders      = "orders"       // answers to the orders service
	Payments    = "payments"     // commands for the payments service
	OrderEvents = "order-events" // events of the orders service, for any subscriber
)

// ChargeCard is a command of the orders service to the payments service.
type ChargeCard struct {
	OrderID string
	Card    string
	Cents   int64
}

// CardCharged is an answer: the card was charged.
type CardCharged struct {
	OrderID string
	Cents   int64
}

// CardDeclined is the other answer: nothing was charged, and nothing will be.
type CardDeclined struct {
	OrderID string
	Reason  string
}

// OrderPaid is an event: an order is paid and may be shipped.
type OrderPaid struct{ OrderID string }

// Kind names the message.
func (ChargeCard) Kind() string { return "card.charge" }

// Kind names the message.
func (CardCharged) Kind() string { return "card.charged" }

// Kind names the message.
func (CardDeclined) Kind() string { return "card.declined" }

// Kind names the message.
func (OrderPaid) Kind() string { return "order.paid" }
