package saga

import (
	"iter"
	"maps"
	"slices"
	"time"
)

// Info is what the engine knows about the message in hand; a value, safe to keep.
type Info struct {
	ID             ID // same on every attempt: the idempotency key for the outside world
	CorrelationID  ID // the message from outside that everything since follows from
	ConversationID ID
	RelatedTo      ID // the message whose handling sent this one; zero from outside
	Kind           string
	Intent         Intent
	From           string // endpoint that sent it, where a Reply goes; "" from outside
	Instance       ID     // the saga instance it is addressed to (an answer or a timeout); zero: found by key
	Origin         ID     // the saga instance that sent it; a Reply is addressed to it
	Attempt        int    // 1 on the first delivery, fleet-wide
	Sent, Due      time.Time
	Fire           *Fire // set when a manifest emitted it

	header map[string]string
}

// Fire says which firing of which manifest emitted a message. Due is in the manifest's zone.
type Fire struct {
	Manifest string
	Run      ID
	Due      time.Time
}

// Delivery is a message as it arrives: what is known of it, and its bytes.
type Delivery struct {
	Info Info
	Body []byte
}

// Header returns a header's value, "" if absent.
func (i Info) Header(name string) string { return i.header[name] }

// Headers yields the headers sorted by name, so that equal headers are always written as equal bytes.
func (i Info) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(i.header)) {
			if !yield(name, i.header[name]) {
				return
			}
		}
	}
}

// HeaderCount is the number of headers.
func (i Info) HeaderCount() int { return len(i.header) }

// WithHeaders returns i with these headers in place of its own. It keeps the map: do not change it afterwards.
func (i Info) WithHeaders(h map[string]string) Info {
	i.header = h
	return i
}

// conversation is inherited from the incoming message, and begins with its id when it carries none.
func (i *Info) conversation() ID {
	if i.ConversationID.IsZero() {
		return i.correlation()
	}
	return i.ConversationID
}

func (i *Info) correlation() ID {
	if i.CorrelationID.IsZero() {
		return i.ID
	}
	return i.CorrelationID
}
