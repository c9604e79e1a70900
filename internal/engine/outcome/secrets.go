package outcome

import (
	"bytes"
	"reflect"

	"github.com/edda-go/edda/internal/base/secret"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/saga"
)

// public returns the part of a body or a state that may be kept: without its secrets, and after the user's function.
// It returns nil if the secrets cannot be found. A text of an unknown type is kept only if there is a user's function
// for it.
func (h *Historian) public(kind string, of reflect.Type, text []byte) []byte {
	if text == nil || of == nil && h.to.History.Redact == nil {
		return nil
	}
	mask, err := secret.Of(of)
	if err == nil && mask != nil {
		text, err = mask.Apply(text)
	}
	if err != nil {
		return nil
	}
	if h.to.History.Redact != nil {
		return h.redacted(kind, text)
	}
	return text
}

// redacted calls the user's function with a copy of the bytes. If it fails, nothing is kept.
func (h *Historian) redacted(kind string, text []byte) (kept []byte) {
	redact, own := h.to.History.Redact, bytes.Clone(text)
	kept, err := handlers.Ask(&h.redact, handlers.Patience, func() []byte { return redact(kind, own) })
	if err != nil {
		h.faults.Log(err, h.to.Log, "edda: Options.Redact failed", "kind", wire.Shown(kind))
	}
	return kept
}

// body returns the part of the body of m that may be kept. For a message that could not be understood it returns nil:
// the dead letter has the body.
func (h *Historian) body(m *message.Message) []byte {
	body := m.Delivery.Body
	if !h.page.KeepsBody(len(body)) {
		return body // its length is kept
	}
	if m.Consumer == nil {
		return nil
	}
	return h.public(m.Delivery.Info.Kind, h.readable(m.Consumer.Type), body)
}

// sent returns the messages that m has sent, with bodies as they may be kept.
func (h *Historian) sent(m *message.Message) []saga.Outgoing {
	if !h.page.KeepsBodies() {
		return m.Step.Out
	}
	out := make([]saga.Outgoing, len(m.Step.Out))
	for n, o := range m.Step.Out {
		out[n] = o
		if h.page.KeepsBody(len(o.Body)) {
			out[n].Body = h.public(o.Info.Kind, h.readable(o.Type), o.Body)
		}
	}
	return out
}

var rawType = reflect.TypeFor[saga.Raw]()

// readable returns the type of a message, or nil if the codec's output may have secrets that the mask cannot find.
func (h *Historian) readable(of reflect.Type) reflect.Type {
	if of == rawType {
		return nil
	}
	if mask, err := secret.Of(of); err != nil || mask != nil && h.to.Codec != saga.JSON {
		return nil
	}
	return of
}
