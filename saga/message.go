package saga

import "fmt"

// Message is anything with a stable name. Declare Kind on the value receiver and make it a constant: it is
// called on the zero value when a definition is made. (A pointer receiver does not compile at StartedBy.)
type Message interface{ Kind() string }

// Raw is a message whose Go type this program does not have: schedulers, dead-letter tools, bridges.
// It is the one Message whose Kind varies by value; it can be sent and cannot be registered.
// Its Body is sent as it is, whatever the codec.
type Raw struct {
	Name string
	Body []byte
}

// Kind is the name the message travels under.
func (r Raw) Kind() string { return r.Name }

// Intent says how a message was sent. Its numbers are stored: they never change.
type Intent uint8

const (
	Command Intent = iota // Send: to the one endpoint that handles the kind
	Event                 // Publish: a copy to every endpoint that handles the kind
	Answer                // Reply: to the sender of the message in hand
	Timer                 // Timeout: to the instance that asked for it
)

var intentNames = [...]string{Command: "send", Event: "publish", Answer: "reply", Timer: "timeout"}

// String is "send", "publish", "reply" or "timeout".
func (i Intent) String() string {
	if int(i) < len(intentNames) {
		return intentNames[i]
	}
	return fmt.Sprintf("intent(%d)", uint8(i))
}

// ParseIntent reads what String wrote.
func ParseIntent(s string) (Intent, error) {
	for i, name := range intentNames {
		if s == name {
			return Intent(i), nil
		}
	}
	return 0, fmt.Errorf("intent of %d bytes: want send, publish, reply or timeout", len(s))
}

// Sent is the receipt of one Send or Publish.
type Sent struct {
	ID        ID
	Copies    int  // queues it was written to; 0 when an event has no subscriber, and for a duplicate
	Duplicate bool // an equal message with this ID was already sent: nothing was written
}

// Posting is a message and how it is sent, for those who send many at a time.
type Posting struct {
	Message Message
	Options []SendOption
}

const maxName = 63

// strayByte is the index of the first byte of s that does not match [a-z][a-z0-9_.-]*, -1 when all do: the one
// rule for kinds, sagas and endpoints. Lower-case ASCII only, so that no two names differ by case or by Unicode form.
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

// CheckName returns an error unless name may name a kind, a saga or an endpoint: [a-z][a-z0-9_.-]{0,62}. The
// error does not hold the name, which may have come from anywhere.
func CheckName(name string) error {
	stray := ""
	switch i := strayByte(name); {
	case i >= 0:
		stray = fmt.Sprintf(", of which byte %d is not allowed", i+1)
	case name != "" && len(name) <= maxName:
		return nil
	}
	return fmt.Errorf("name of %d bytes%s: want 1 to %d of a-z, 0-9, dot, dash and underscore, beginning with a letter",
		len(name), stray, maxName)
}
