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

	headers []header
	places  map[string]int // of the headers, by name, where there are many; nil: look through them
}

// fewHeaders are found by looking through them. A message has few: a slice is smaller than a map, and as fast. Somebody
// else's may have a hundred thousand.
const fewHeaders = 16

// header is one name and its value.
type header struct{ name, value string }

// Fire says which firing of which manifest emitted a message. Due is in the manifest's zone.
type Fire struct {
	Manifest string
	Run      ID  // same on every attempt
	Attempt  int // 1 for the first message that was sent for the run
	Due      time.Time
}

// Delivery is a message as it arrives: what is known of it, and its bytes.
type Delivery struct {
	Info Info
	Body []byte
}

// Header returns a header's value, "" if absent.
func (i Info) Header(name string) string {
	if n := i.place(name); n >= 0 {
		return i.headers[n].value
	}
	return ""
}

// place is where the header is, -1 if absent.
func (i *Info) place(name string) int {
	if i.places != nil {
		if n, ok := i.places[name]; ok {
			return n
		}
		return -1
	}
	for n := range i.headers { // and not slices.IndexFunc: a batch does this for each header of each message
		if i.headers[n].name == name {
			return n
		}
	}
	return -1
}

// Headers yields the headers in the order they were written: by name, unless another program wrote them.
func (i Info) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, h := range i.headers {
			if !yield(h.name, h.value) {
				return
			}
		}
	}
}

// HeaderCount is the number of headers.
func (i Info) HeaderCount() int { return len(i.headers) }

// WithHeaders returns i with these headers, sorted by name, in place of its own.
func (i Info) WithHeaders(h map[string]string) Info {
	i.headers, i.places = nil, nil
	for _, name := range slices.Sorted(maps.Keys(h)) {
		i.headers = append(i.headers, header{name, h[name]})
	}
	return i
}

// AddHeader sets one header, for runtimes that read a message. It must not be called on a copy of an Info that is in
// use.
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
