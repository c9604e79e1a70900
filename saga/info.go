package saga

import (
	"iter"
	"time"
)

// Info describes the message in hand. It is a value that a handler may keep.
type Info struct {
	ID             ID // the same on every attempt: the idempotency key for calls to other systems
	CorrelationID  ID // the message from outside that this one follows from
	ConversationID ID
	RelatedTo      ID // the message whose handler sent this one; zero from outside
	Kind           string
	Intent         Intent
	From           string // the endpoint that sent it, where a Reply goes; "" from outside
	Instance       ID     // the saga instance that it names (an answer or a timeout); zero: found by key
	Origin         ID     // the saga instance that sent it; a Reply goes there
	Attempt        int    // 1 on the first delivery, counted over all processes
	Sent, Due      time.Time
	Expire         time.Duration // from Sent until it is discarded; 0 is never
	Firing         *Firing       // nil unless a manifest emitted it

	headers []header
	places  map[string]int // index of a header by name, if there are many; nil: search headers
}

// fewHeaders is the number of headers that are searched without a map. Edda's messages have few, others up to 100,000.
const fewHeaders = 16

// header is one name and its value.
type header struct{ name, value string }

// Firing is the firing of a manifest that emitted a message. Due is in the manifest's zone.
type Firing struct {
	Manifest string
	Run      ID  // same on every attempt
	Attempt  int // 1 for the first message of the run
	Due      time.Time
}

// Delivery is a message as it arrives: its Info and its body.
type Delivery struct {
	Info Info
	Body []byte
}

// Header returns the value of a header, or "" if the message does not have it.
func (i Info) Header(name string) string {
	if n := i.place(name); n >= 0 {
		return i.headers[n].value
	}
	return ""
}

// place returns the index of the header, or -1.
func (i *Info) place(name string) int {
	if i.places != nil {
		if n, ok := i.places[name]; ok {
			return n
		}
		return -1
	}
	for n := range i.headers { // faster than slices.IndexFunc, and called for each header of each message
		if i.headers[n].name == name {
			return n
		}
	}
	return -1
}

// Headers yields the headers in their stored order. For messages that Edda sent this is the order of names, followed
// by the headers that Runtime.Outgoing added.
func (i Info) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, h := range i.headers {
			if !yield(h.name, h.value) {
				return
			}
		}
	}
}

// HeaderCount returns the number of headers.
func (i Info) HeaderCount() int { return len(i.headers) }

// AddHeader sets one header. It is for runtimes that read a message, and for Runtime.Outgoing. It must not be called
// on a copy of an Info that is in use.
func (i *Info) AddHeader(name, value string) {
	if n := i.place(name); n >= 0 {
		i.headers[n].value = value
		return
	}
	i.headers = append(i.headers, header{name, value})
	switch n := len(i.headers); {
	case i.places != nil:
		i.places[name] = n - 1
	case n > fewHeaders:
		i.places = make(map[string]int, 2*n)
		for at, h := range i.headers {
			i.places[h.name] = at
		}
	}
}

// conversation returns the conversation of messages that the handler of this one sends.
func (i *Info) conversation() ID {
	if i.ConversationID.IsZero() {
		return i.correlation()
	}
	return i.ConversationID
}

// correlation returns the correlation id of messages that the handler of this one sends.
func (i *Info) correlation() ID {
	if i.CorrelationID.IsZero() {
		return i.ID
	}
	return i.CorrelationID
}
