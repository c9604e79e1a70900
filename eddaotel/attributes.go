package eddaotel

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const schemaURL = semconv.SchemaURL

// The attributes that Edda defines.
const (
	attempt    = attribute.Key("edda.attempt")
	kind       = attribute.Key("edda.kind")
	intent     = attribute.Key("edda.intent")
	fate       = attribute.Key("edda.fate")
	work       = attribute.Key("edda.work")
	sagaName   = attribute.Key("edda.saga.name")
	sagaKey    = attribute.Key("edda.saga.key")
	instanceID = attribute.Key("edda.saga.instance")
	manifest   = attribute.Key("edda.manifest")
	runID      = attribute.Key("edda.run")
)

// Names of operations. An intent is the name of its own operation.
const (
	operationProcess = "process"
	operationSettle  = "settle"
	operationRelay   = "relay"
	operationFire    = "fire"
)

var system = semconv.MessagingSystemKey.String("edda")

// operation returns the attributes that every span has.
func (t *Tracing) operation(name string, of attribute.KeyValue, destination string) []attribute.KeyValue {
	all := operation(name, of, destination)
	if t.options.ClientID != "" {
		all = append(all, semconv.MessagingClientID(t.options.ClientID))
	}
	return all
}

// operation returns the attributes that a span and a measurement have.
func operation(name string, of attribute.KeyValue, destination string) []attribute.KeyValue {
	return []attribute.KeyValue{
		system, semconv.MessagingOperationName(name), of, semconv.MessagingDestinationName(destination),
	}
}

// message returns the attributes of one message.
func message(i *saga.Info) []attribute.KeyValue {
	all := []attribute.KeyValue{
		semconv.MessagingMessageID(i.ID.String()), semconv.MessagingMessageConversationID(i.ConversationID.String()),
		kind.String(i.Kind), intent.String(i.Intent.String()),
	}
	if !i.Instance.IsZero() {
		all = append(all, instanceID.String(i.Instance.String()))
	}
	if i.Firing != nil {
		all = append(all, manifest.String(i.Firing.Manifest), runID.String(i.Firing.Run.String()))
	}
	return all
}

// fail records an error in a span.
func fail(span trace.Span, err error) {
	const most = 500
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "..."
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
	span.SetStatus(codes.Error, text)
}

// sentinels maps the errors of Edda to names.
var sentinels = []struct {
	err  error
	name string
}{
	{bus.ErrConflict, "bus.ErrConflict"}, {bus.ErrClaimLost, "bus.ErrClaimLost"},
	{bus.ErrCancelled, "bus.ErrCancelled"}, {bus.ErrNoRoute, "bus.ErrNoRoute"},
	{bus.ErrAmbiguous, "bus.ErrAmbiguous"}, {bus.ErrIDConflict, "bus.ErrIDConflict"}, {bus.ErrDrain, "bus.ErrDrain"},
	{saga.ErrTooLarge, "saga.ErrTooLarge"}, {saga.ErrInvalidText, "saga.ErrInvalidText"},
	{saga.ErrState, "saga.ErrState"},
}

// errorType returns a name for err. The number of names is small.
func errorType(err error) string {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	var panicked *saga.PanicError
	if errors.As(err, &panicked) {
		return panicType
	}
	var postgres interface{ SQLState() string }
	if errors.As(err, &postgres) && len(postgres.SQLState()) > 1 {
		return "SQLSTATE " + postgres.SQLState()[:2] // its class
	}
	return typeOf(err)
}

const panicType = "panic"

// typeOf returns the type of the innermost error, or "_OTHER" if it is a type for a text alone.
func typeOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	switch name := fmt.Sprintf("%T", err); name {
	case "*errors.errorString", "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError":
		return semconv.ErrorTypeOther.Value.AsString()
	default:
		return name
	}
}
