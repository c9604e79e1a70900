package historian

import (
	"reflect"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/secret"
	"github.com/edda-go/edda/internal/wire"
	"github.com/edda-go/edda/saga"
)

// public is what may be kept of a body or a state of a type: without its secrets, and as the user's function returns
// it. It is nil if that cannot be known.
func (h *Historian) public(kind string, of reflect.Type, text []byte) []byte {
	mask, err := secret.Of(of)
	if err == nil && mask != nil && text != nil {
		text, err = mask.Apply(text)
	}
	if err != nil {
		return nil
	}
	if h.to.History.Redact != nil && text != nil {
		return h.redacted(kind, text)
	}
	return text
}

// redacted calls the user's function, with bytes of its own. If it panics nothing is kept.
func (h *Historian) redacted(kind string, text []byte) (kept []byte) {
	defer func() {
		if recover() != nil {
			kept = nil
			h.to.Calm.Warn("edda: Options.Redact panicked", "kind", wire.Shown(kind))
		}
	}()
	return h.to.History.Redact(kind, append([]byte{}, text...))
}

// body is what may be kept of the body of m. Of a message that nobody understands nothing is: the dead letter has it.
func (h *Historian) body(m *delivery.Message) []byte {
	if !h.page.KeepsBodies() {
		return m.Delivery.Body // its length is kept
	}
	if m.Consumer == nil {
		return nil
	}
	return h.public(m.Kind, m.Consumer.Type, m.Delivery.Body)
}

// sent is what m has sent, with bodies as they may be kept.
func (h *Historian) sent(m *delivery.Message) []saga.Outgoing {
	if !h.page.KeepsBodies() {
		return m.Step.Out
	}
	out := make([]saga.Outgoing, len(m.Step.Out))
	for n, o := range m.Step.Out {
		out[n] = o
		out[n].Body = h.public(o.Info.Kind, o.Type, o.Body)
	}
	return out
}
