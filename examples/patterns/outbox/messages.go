package outbox

// CallWebhook requests a call that notifies a different system of a shipped order.
type CallWebhook struct {
	Order string `json:"order"`
	URL   string `json:"url"`
}

func (CallWebhook) Kind() string { return "webhook.call" }
