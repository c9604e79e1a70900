package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/edda-go/edda/internal/lease"
)

// RelayOptions of a Relay. Every zero is a default, and a negative number an error.
type RelayOptions struct {
	BatchMax   int           // messages that forward is given at a time; 0 is 500, at most 5,000
	BatchBytes int           // kinds, headers and bodies of a turn; 0 is 4 MiB. A larger message comes alone
	Poll       time.Duration // how often the queue is looked at without a wake-up; 0 is 1 s
	Lease      time.Duration // how long the relay stays with a process that has died; 0 is the default lease
	Server     string        // the name of this process in the table lease, for people who look; "" is the host's name
	Drain      time.Duration // how long Run lets forward finish after its context ended; 0 is 30 s

	// Keep is how long copies of relayed messages are kept at least, to be listed and replayed: "edda outbox". 0 keeps
	// none. All relays of a database keep theirs as long as the one that wants it longest.
	Keep time.Duration

	// A message that fails is tried again after Retry, which grows up to RetryMost. What is behind it waits.
	Retry     time.Duration // 0 is 100 ms
	RetryMost time.Duration // 0 is 30 s, at most 1 h

	// Stuck is after how many failures of a message those behind it are tried, to tell one that the other side does not
	// take from another side that is away; 0 is 10. A message is given up only while others go through: see
	// docs/guide/outbox.md.
	Stuck int

	// Permanent tells of an error of forward whether no attempt can succeed, such as a message that is too large for
	// the broker. The message is then a dead letter at once. saga.Permanent says the same; nil is never.
	Permanent func(error) bool

	// UnknownFor is how long a message in a form that this program does not read holds up the relay, for a newer
	// program to take over; 0 is 10 min. After that it is a dead letter, and for a day so is at once every other such
	// message.
	UnknownFor time.Duration

	Logger *slog.Logger // nil is the bus's
}

func (o RelayOptions) withDefaults(log *slog.Logger) (RelayOptions, error) {
	var faults []error
	between := func(name string, value, low, high int64) {
		if value < low || value > high {
			faults = append(faults, fmt.Errorf("%s is %d, want %d to %d (0 is the default)", name, value, low, high))
		}
	}
	within := func(name string, value, low, high time.Duration) {
		if value != 0 && (value < low || value > high) {
			faults = append(faults, fmt.Errorf("%s is %v, want %v to %v (0 is the default)", name, value, low, high))
		}
	}
	between("BatchMax", int64(o.BatchMax), 0, mostBatch)
	between("BatchBytes", int64(o.BatchBytes), 0, mostBytes)
	between("Stuck", int64(o.Stuck), 0, math.MaxInt32)
	within("Poll", o.Poll, 0, time.Hour)
	within("Lease", o.Lease, shortestTTL, longestTTL)
	within("Drain", o.Drain, 0, 24*time.Hour)
	within("Keep", o.Keep, time.Minute, 10*365*24*time.Hour)
	within("Retry", o.Retry, time.Millisecond, time.Hour)
	within("UnknownFor", o.UnknownFor, 0, 365*24*time.Hour)
	within("RetryMost", o.RetryMost, time.Millisecond, time.Hour)
	setDefault(&o.BatchMax, standardRows)
	setDefault(&o.BatchBytes, 4<<20)
	setDefault(&o.Stuck, 10)
	setDefault(&o.Poll, time.Second)
	setDefault(&o.Lease, lease.Default)
	setDefault(&o.Drain, 30*time.Second)
	setDefault(&o.RetryMost, 30*time.Second)
	setDefault(&o.Retry, min(100*time.Millisecond, o.RetryMost))
	setDefault(&o.UnknownFor, 10*time.Minute)
	if o.Retry > o.RetryMost {
		faults = append(faults, fmt.Errorf("Retry is %v and RetryMost is %v, want no less than Retry", o.Retry,
			o.RetryMost))
	}
	if o.Permanent == nil {
		o.Permanent = func(error) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = log
	}
	return o, errors.Join(faults...)
}

// endpoint are the options of the endpoint whose queue is relayed.
func (o RelayOptions) endpoint() EndpointOptions {
	return EndpointOptions{Concurrency: 1, BatchMax: o.BatchMax, BatchBytes: o.BatchBytes, Poll: o.Poll, Drain: o.Drain,
		StepTimeout: relayTimeout}
}
