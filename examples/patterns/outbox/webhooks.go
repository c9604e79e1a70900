package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// page webhooks

// Webhooks calls other systems.
type Webhooks struct{ Client *http.Client } // with a Timeout

func (h Webhooks) call(ctx *bus.Context, m CallWebhook) error {
	body, err := json.Marshal(map[string]string{"event": "order.shipped", "order": m.Order})
	if err != nil {
		return saga.Permanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(body))
	if err != nil {
		return saga.Permanent(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Webhook-Id", ctx.Info().ID.String()) // the same on every attempt
	response, err := h.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch status := response.StatusCode; {
	case status < 300:
		return nil
	case status == http.StatusGone:
		return saga.Discard("the other system wants no more calls")
	}
	return fmt.Errorf("call the webhook of order %s: %s", m.Order, response.Status)
}

// Endpoint tries a call for two days, more and more seldom, and then keeps it as a dead letter.
func (h Webhooks) Endpoint(b *bus.Bus) (*bus.Endpoint, error) {
	policy, err := recoverability.Retries{Immediate: 1, Delayed: 22, Step: 10 * time.Second,
		Growth: recoverability.Exponential, Max: 4 * time.Hour}.Policy()
	if err != nil {
		return nil, err
	}
	return bus.NewEndpoint(b, "webhooks", bus.EndpointOptions{Policy: policy}, bus.Handle(h.call))
}

// end
