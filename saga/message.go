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
	return 0, fmt.Errorf("intent %q: want send, publish, reply or timeout", s)
}

// Sent is the receipt of one Send or Publish.
type Sent struct {
	ID        ID
	Copies    int  // queues it was written to; 0 when an event has no subscriber
	Duplicate bool // an equal message with this ID was already sent: nothing was written
}

const maxName = 63

// validName reports whether s matches [a-z][a-z0-9_.-]{0,62}: the one rule for kinds, sagas and endpoints.
// Lower-case ASCII only, so that no two names differ by case or by Unicode form.
func validName(s string) bool {
	if s == "" || len(s) > maxName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// CheckName returns an error unless name may name a kind, a saga or an endpoint: [a-z][a-z0-9_.-]{0,62}.
func CheckName(name string) error {
	if validName(name) {
		return nil
	}
	return fmt.Errorf("name %.80q: want 1 to %d of a-z, 0-9, dot, dash and underscore, beginning with a letter", name, maxName)
}
