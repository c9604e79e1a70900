package outbox

// CallWebhook asks for another system to be told that an order was shipped.
type CallWebhook struct {
	Order string `json:"order"`
	URL   string `json:"url"`
}

func (CallWebhook) Kind() string { return "webhook.call" }
