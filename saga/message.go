package saga

import "fmt"

// Message is a value with a stable kind. Declare Kind on the value receiver and return a constant: Define calls it on
// the zero value. With a pointer receiver StartedBy does not compile. With the codec JSON every field has to be
// exported: an endpoint refuses a message type with fields that would not arrive.
type Message interface{ Kind() string }

// Raw is a message without a Go type, for schedulers, dead-letter tools and bridges. It can be sent but has no handler,
// and its Kind varies by value. Its Body is sent unchanged, whatever the codec is.
type Raw struct {
	Name string
	Body []byte
}

// Kind returns Name.
func (r Raw) Kind() string { return r.Name }

// Intent records how a message was sent. Its numbers are stored and never change.
type Intent uint8

const (
	Command Intent = iota // Send: to the one endpoint that handles the kind
	Event                 // Publish: a copy to every endpoint that handles the kind
	Answer                // Reply: to the sender of the message in hand
	Timer                 // Timeout: to the instance that set it
)

var intentNames = [...]string{Command: "send", Event: "publish", Answer: "reply", Timer: "timeout"}

// String returns "send", "publish", "reply" or "timeout".
func (i Intent) String() string {
	if int(i) < len(intentNames) {
		return intentNames[i]
	}
	return fmt.Sprintf("intent(%d)", uint8(i))
}

// Sent is the receipt of one Send or Publish.
type Sent struct {
	ID        ID
	Copies    int  // number of queues it was written to; 0 for an event without a subscriber, and for a duplicate
	Duplicate bool // an equal message with this ID was sent before: nothing was written
}

// Posting is a message with its options, for calls that send many messages at a time.
type Posting struct {
	Message Message
	Options []SendOption
}

const maxName = 63

// strayByte returns the index of the first byte of s that does not match [a-z][a-z0-9_.-]*, or -1. This is the rule for
// kinds, sagas and endpoints: lower-case ASCII, so that no two names differ only by case or by Unicode form.
func strayByte(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z'
		other := c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
		if !letter && (i == 0 || !other) {
			return i
		}
	}
	return -1
}

// CheckName returns an error unless name is valid for a kind, a saga or an endpoint: [a-z][a-z0-9_.-]{0,62}. The error
// does not contain the name, because the name may be foreign text.
func CheckName(name string) error {
	stray := ""
	switch i := strayByte(name); {
	case i >= 0:
		stray = fmt.Sprintf(", byte %d is forbidden", i+1)
	case name != "" && len(name) <= maxName:
		return nil
	}
	return fmt.Errorf("name of %d bytes%s: want 1 to %d of a-z, 0-9, dot, dash and underscore, beginning with a letter",
		len(name), stray, maxName)
}
