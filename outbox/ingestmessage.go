package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/saga"
)

// foreignID is the header that keeps an id that is not a UUID unchanged.
const foreignID = "watermill-uuid"

// incoming is one message on its way into this database.
type incoming struct {
	given *IngestMessage
	out   saga.Outgoing
	fault error // why it cannot be a message here
	entry inboxEntry
	state IngestState

	published bool // no endpoint is named
	refused   bool // Outgoing failed
}

// newIncoming makes a message, or records why it cannot be one. Both get an id.
func newIncoming(ctx context.Context, b *Border, o IngestOptions, given *IngestMessage) *incoming {
	m := &incoming{given: given, published: o.Endpoint == ""}
	if given.ID == "" {
		m.entry.ID = newID()
	} else {
		m.entry = inboxEntry{ID: inboxID(o.From, given.ID), Sum: inboxSum(given.Kind, given.Body)}
	}
	m.out, m.fault = m.compose(ctx, b.Hooks.Outgoing)
	if m.refused { // not the message's fault, and its sender would repeat it
		b.calm.Warn("edda: a message came in without the headers of Options.Outgoing", "source", o.From,
			"kind", wire.Shown(given.Kind), "error", m.fault)
		m.out, m.fault = m.compose(ctx, nil)
	}
	if m.fault != nil {
		m.out = saga.Outgoing{Info: saga.Info{ID: m.entry.ID, Kind: given.Kind}}
	}
	return m
}

// foreign reports whether the sender's id differs from the message's.
func (m *incoming) foreign() bool { return m.given.ID != "" && m.given.ID != m.entry.ID.String() }

// compose checks the message like every sent message, and reads the envelope of a different Edda.
func (m *incoming) compose(ctx context.Context, outgoing func(context.Context, *saga.Info)) (saga.Outgoing, error) {
	if m.given.Fault != nil {
		return saga.Outgoing{}, m.given.Fault
	}
	header, envelope := wire.Split(m.given.Header)
	if envelope == nil {
		header = m.given.Header
	}
	if m.foreign() {
		if envelope == nil {
			header = maps.Clone(header)
		}
		if header == nil {
			header = map[string]string{}
		}
		header[foreignID] = m.given.ID
	}
	options := make([]saga.SendOption, 0, len(header))
	for name, value := range header {
		options = append(options, saga.WithHeader(name, value))
	}
	runtime := saga.Runtime{Now: time.Now(), NewID: func() saga.ID { return m.entry.ID }, Caller: ctx}
	hooked := false // Compose calls Outgoing last
	if outgoing != nil {
		runtime.Outgoing = func(ctx context.Context, i *saga.Info) {
			if m.open(envelope, i) == nil { // otherwise it becomes a dead letter
				hooked = true
				outgoing(ctx, i)
			}
		}
	}
	out, err := runtime.Compose(saga.Command, saga.Raw{Name: m.given.Kind, Body: m.given.Body}, options...)
	var permanent *saga.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Err
	}
	switch {
	case err == nil:
		err = m.open(envelope, &out.Info)
	case hooked:
		m.refused = true
	}
	return out, err
}

// open reads the envelope of a different Edda, if there is one. A command without an endpoint becomes an event.
func (m *incoming) open(envelope map[string]string, i *saga.Info) error {
	if envelope != nil {
		if err := wire.OpenEnvelope(envelope, i); err != nil {
			return fmt.Errorf("read its envelope: %w", err)
		}
	}
	if m.published && i.Intent == saga.Command {
		i.Intent = saga.Event
	}
	return nil
}

// letterHeader returns the header of the dead letter for an invalid message. Bytes that are not UTF-8 are written as
// \xNN, so that nothing is lost.
func (m *incoming) letterHeader() []byte {
	header := make(map[string]string, len(m.given.Header)+1)
	for name, value := range m.given.Header {
		header[legible(name)] = legible(value)
	}
	if m.foreign() {
		header[foreignID] = legible(m.given.ID)
	}
	text, err := json.Marshal(header) // strings always encode
	if err != nil {
		return []byte("{}")
	}
	return text
}

func legible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// Envelope returns the data that must cross a border with a message in addition to its id, kind and body: the user's
// headers, the sending endpoint, the conversation and the saga instance. Ingest reads it.
//
// The run of a manifest is left out: a run ends in the database that started it.
func Envelope(info *saga.Info) map[string]string { return wire.Envelope(info) }
