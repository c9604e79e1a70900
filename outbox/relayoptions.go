package outbox

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/store/lease"
)

// RelayOptions configure a Relay. The zero value of each field is its default, and a negative number is an error.
type RelayOptions struct {
	BatchMax   int           // messages of one call of forward; 0 is 500, at most 5,000
	BatchBytes int           // bytes of a pass; 0 is 4 MiB, at most 256 MiB. A larger message is forwarded alone
	Poll       time.Duration // interval of reads without a wake-up; 0 is 1 s, at most 1 h
	// Lease is how long a crashed process keeps the relay; 0 is the default lease, 2 s to 1 h.
	Lease  time.Duration
	Holder string // the name of this process in the table lease, for operators; "" is the host's name
	// Drain is how long Run lets forward finish after its context ended; 0 is 30 s, at most 24 h. The context of each
	// call of forward ends after ten times as long.
	Drain time.Duration

	// Keep is the shortest time that copies of relayed messages are kept, to be listed and replayed: "edda outbox". 0
	// keeps no copies; otherwise 1 min to 10 years. The longest Keep of all relays of a database holds for all.
	Keep time.Duration

	// A message that fails is retried after Retry; the delay doubles up to MaxRetryDelay. Messages behind it wait.
	Retry         time.Duration // 0 is 100 ms
	MaxRetryDelay time.Duration // 0 is 30 s, at most 1 h

	// Stuck is the number of failures of a message after which the relay tries the messages behind it, to find out
	// whether the other side refuses the message or is away; 0 is 10. A message becomes a dead letter only while
	// others are accepted: see docs/guide/outbox.md.
	Stuck int

	// Permanent reports whether an error of forward means that no attempt can succeed, for example because the
	// message is too large for the broker. The message is then a dead letter at once. saga.Permanent has the same
	// effect; nil is never.
	Permanent func(error) bool

	// UnknownKindTimeout is how long a message in a form that this program cannot read holds up the relay, so that a
	// newer program can take over; 0 is 10 min, at most a year. After that it becomes a dead letter, and for a day
	// every other such message becomes one at once.
	UnknownKindTimeout time.Duration

	Logger *slog.Logger // nil is the bus's
}

func (o RelayOptions) withDefaults(log *slog.Logger) (RelayOptions, error) {
	var f option.Faults
	f.Int("BatchMax", &o.BatchMax, 500, 0, mostBatch)
	f.Int("BatchBytes", &o.BatchBytes, 4<<20, 0, mostBytes)
	f.Int("Stuck", &o.Stuck, 10, 0, math.MaxInt32)
	f.Duration("Poll", &o.Poll, time.Second, 0, time.Hour)
	f.Duration("Lease", &o.Lease, lease.Default, 2*time.Second, time.Hour)
	f.Duration("Drain", &o.Drain, 30*time.Second, 0, 24*time.Hour)
	f.Duration("Keep", &o.Keep, 0, time.Minute, 10*365*24*time.Hour)
	f.Duration("MaxRetryDelay", &o.MaxRetryDelay, 30*time.Second, time.Millisecond, time.Hour)
	f.Duration("Retry", &o.Retry, min(100*time.Millisecond, o.MaxRetryDelay), time.Millisecond, time.Hour)
	f.Duration("UnknownKindTimeout", &o.UnknownKindTimeout, 10*time.Minute, 0, 365*24*time.Hour)
	if o.Retry > o.MaxRetryDelay {
		f.Add(fmt.Errorf("Retry is %v and MaxRetryDelay is %v, want no less than Retry", o.Retry, o.MaxRetryDelay))
	}
	if o.Permanent == nil {
		o.Permanent = func(error) bool { return false }
	}
	option.Default(&o.Logger, log)
	o.Logger = handlers.Logger(o.Logger)
	return o, f.Err()
}

// forwardMost returns the time after which the context of a call of forward ends.
func (o *RelayOptions) forwardMost() time.Duration { return forwardDrains * o.Drain }

const (
	forwardDrains = 10

	mostBatch = 5000
	mostBytes = 256 << 20 // Postgres accepts no parameter of a gigabyte
)
