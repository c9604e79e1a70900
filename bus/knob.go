package bus

import (
	"context"

	"github.com/edda-go/edda/internal/settings"
	"github.com/edda-go/edda/internal/wake"
)

// turned tells every process of an endpoint to read its settings. A process that does not hear of it reads them at its
// next poll.
func (b *Bus) turned(ctx context.Context, queue int) {
	payload := settings.Prefix + wake.Payload(queue)
	b.hub.Hear(payload)
	b.notifier.Send(ctx, payload)
}
