package handlers

// OrderPaid says that an order was paid.
type OrderPaid struct {
	Order   string `json:"order"`
	Article string `json:"article"`
}

// Ship asks for an order to be shipped.
type Ship struct {
	Order string `json:"order"`
}

// ThankYouDue is a timeout.
type ThankYouDue struct{}

func (OrderPaid) Kind() string   { return "order.paid" }
func (Ship) Kind() string        { return "order.ship" }
func (ThankYouDue) Kind() string { return "customer.thank-you-due" }
