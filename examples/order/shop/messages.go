package shop

// Messages have stable names: the Go types may be renamed, the kinds may not.

// OrderPlaced is an event of the shop, and starts the saga.
type OrderPlaced struct {
	Order int    `json:"order"`
	Cents int    `json:"cents"`
	Goods string `json:"goods"`
}

// ChargeCard requests a charge. The answer is CardCharged or CardRefused.
type ChargeCard struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

// CardCharged answers ChargeCard.
type CardCharged struct {
	Order int `json:"order"`
}

// CardRefused answers ChargeCard.
type CardRefused struct {
	Order int `json:"order"`
}

// RefundCard takes a charge back.
type RefundCard struct {
	Order int `json:"order"`
}

// ReserveStock requests a reservation of goods. The answer is StockReserved.
type ReserveStock struct {
	Order int    `json:"order"`
	Goods string `json:"goods"`
}

// StockReserved answers ReserveStock.
type StockReserved struct {
	Order int `json:"order"`
}

// ReleaseStock takes a reservation back.
type ReleaseStock struct {
	Order int `json:"order"`
}

// ShipOrder sends the goods. The answer is OrderShipped.
type ShipOrder struct {
	Order int `json:"order"`
}

// OrderShipped answers ShipOrder.
type OrderShipped struct {
	Order int `json:"order"`
}

// PaymentOverdue is a timeout of the saga.
type PaymentOverdue struct{}

// OrderClosed is the event that ends an order.
type OrderClosed struct {
	Order   int    `json:"order"`
	Outcome string `json:"outcome"`
}

// Kind names the message.
func (OrderPlaced) Kind() string { return "order.placed" }

// Kind names the message.
func (ChargeCard) Kind() string { return "card.charge" }

// Kind names the message.
func (CardCharged) Kind() string { return "card.charged" }

// Kind names the message.
func (CardRefused) Kind() string { return "card.refused" }

// Kind names the message.
func (RefundCard) Kind() string { return "card.refund" }

// Kind names the message.
func (ReserveStock) Kind() string { return "stock.reserve" }

// Kind names the message.
func (StockReserved) Kind() string { return "stock.reserved" }

// Kind names the message.
func (ReleaseStock) Kind() string { return "stock.release" }

// Kind names the message.
func (ShipOrder) Kind() string { return "order.ship" }

// Kind names the message.
func (OrderShipped) Kind() string { return "order.shipped" }

// Kind names the message.
func (PaymentOverdue) Kind() string { return "order.payment-overdue" }

// Kind names the message.
func (OrderClosed) Kind() string { return "order.closed" }
