package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Options of a Keeper. Every zero is a default, and a negative number an error.
type Options struct {
	// of a term that is not renewed; 0 is 15 s; 100 ms to 1 h. A holder that dies is followed after TTL + 1.25 ×
	// Acquire at most
	TTL time.Duration
	// how often the holder renews, and how long an attempt may take; 0 is TTL/3, at most 5 s; at most TTL/3
	Renew   time.Duration
	Acquire time.Duration // how often others bid, ± a quarter; 0 is TTL/3, at most 5 s
	Margin  time.Duration // how long before the database the holder gives up; 0 is TTL/10, at most 1 s; at most TTL/3
	// how long a function may take to return, still being renewed, after its context ended; 0 is 30 s
	Stop time.Duration

	// of this replica, for people who look; "" is $EDDA_REPLICA, else the host's name. A random part is added in any
	// case
	Holder string
	// what bids and renewals go through; nil is a connection of the Keeper's own. Work must not use it
	DB     DB
	Logger *slog.Logger // nil is slog.Default()
}

// Default is how long a lease lasts without a renewal, unless its options say otherwise: of a leased message, a partition,
// a relay and a Keeper.
const Default = 15 * time.Second

// ReplicaVariable names the replica where Options.Holder does not.
const ReplicaVariable = "EDDA_REPLICA"

const (
	shortestTTL = 100 * time.Millisecond
	longestTTL  = time.Hour
	leastRenews = 3 // in a TTL: one that is missed is not fatal
)

func (o Options) withDefaults() (Options, error) {
	var faults []error
	between := func(name string, value, low, high time.Duration) {
		if value < low || value > high {
			faults = append(faults, fmt.Errorf("%s is %v, want %v to %v (0 is the default)", name, value, low, high))
		}
	}
	setDefault(&o.TTL, Default)
	between("TTL", o.TTL, shortestTTL, longestTTL)
	between("Renew", o.Renew, 0, longestTTL)
	if o.Renew > o.TTL/leastRenews {
		faults = append(faults, fmt.Errorf("Renew is %v and TTL is %v, want a TTL of %d × Renew or more: one "+
			"renewal that is missed must not end a term",
			o.Renew, o.TTL, leastRenews))
	}
	between("Acquire", o.Acquire, 0, longestTTL)
	between("Margin", o.Margin, 0, o.TTL/3)
	between("Stop", o.Stop, 0, 24*time.Hour)
	setDefault(&o.Renew, min(5*time.Second, o.TTL/leastRenews))
	setDefault(&o.Acquire, min(5*time.Second, o.TTL/3))
	setDefault(&o.Margin, min(time.Second, o.TTL/10))
	setDefault(&o.Stop, 30*time.Second)
	setDefault(&o.Holder, os.Getenv(ReplicaVariable))
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, errors.Join(append(faults, checkHolder(o.Holder))...)
}

func setDefault[V comparable](value *V, standard V) {
	var zero V
	if *value == zero {
		*value = standard
	}
}
