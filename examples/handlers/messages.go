package handlers

// OrderPaid is the event of a paid order.
type OrderPaid struct {
	Order   string `json:"order"`
	Article string `json:"article"`
}

// Ship requests the shipment of an order.
type Ship struct {
	Order string `json:"order"`
}

// ThankYouDue is a timeout.
type ThankYouDue struct{}

func (OrderPaid) Kind() string   { return "order.paid" }
func (Ship) Kind() string        { return "order.ship" }
func (ThankYouDue) Kind() string { return "customer.thank-you-due" }
