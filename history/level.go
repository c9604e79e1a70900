package history

import (
	"encoding/binary"
	"fmt"

	"github.com/edda-go/edda/saga"
)

// Level is how much of the history is kept.
type Level uint8

// The levels. Each includes its predecessor.
const (
	Unset  Level = iota // the level of the bus, or States if that is unset too
	Off                 // nothing
	Steps               // each attempt of a message: its fate, its duration, its error, the messages that it sent
	States              // the state of an instance after each version
	Bodies              // the bodies of messages, in and out, up to 16 KiB each
)

var levels = [...]string{"", "off", "steps", "states", "bodies"}

// String returns "" for Unset, and otherwise the text that ParseLevel accepts.
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// ParseLevel parses a level: off, steps, states or bodies. Any other text is an error.
func ParseLevel(text string) (Level, error) {
	for l := Off; l <= Bodies; l++ {
		if levels[l] == text {
			return l, nil
		}
	}
	return Unset, fmt.Errorf("history level %.80q: want off, steps, states or bodies", text)
}

// Options configure the history of an endpoint.
type Options struct {
	Level Level
	// Sample is the share of the conversations that are kept, above 0 and up to 1; 0 means 1. A conversation is kept
	// whole or not at all. Attempts that failed, dead letters and discarded messages are always kept.
	Sample float64
}

// Check returns an error if a field of o is out of range.
func (o Options) Check() error {
	if o.Level > Bodies {
		return fmt.Errorf("History.Level is %d, want Off, Steps, States or Bodies", o.Level)
	}
	if !(o.Sample >= 0 && o.Sample <= 1) {
		return fmt.Errorf("History.Sample is %v, want 0 to 1", o.Sample)
	}
	return nil
}

// Or returns o with its unset fields taken from general.
func (o Options) Or(general Options) Options {
	if o.Level == Unset {
		o.Level = general.Level
	}
	if o.Sample == 0 {
		o.Sample = general.Sample
	}
	return o
}

// Default applies if nothing is set: every conversation is kept, with states.
var Default = Options{Level: States, Sample: 1}

// Keeps reports whether o keeps successful attempts of a message.
func (o Options) Keeps(info *saga.Info) bool { return o.Level > Off && o.samples(conversationOf(info)) }

// samples reports whether o keeps a conversation.
func (o Options) samples(conversation saga.ID) bool {
	if o.Sample == 0 || o.Sample >= 1 {
		return true
	}
	// Half of an id of version 7 is its time, and a caller may have chosen any id: mix all bytes.
	mixed := (binary.BigEndian.Uint64(conversation[:8]) ^ binary.BigEndian.Uint64(conversation[8:])) *
		0x9e3779b97f4a7c15
	mixed ^= mixed >> 32
	mixed *= 0xd6e8feb86659fd93
	return float64(mixed>>11)/(1<<53) < o.Sample
}
