package lease

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/edda-go/edda/internal/base/option"
)

// Default is how long a lease lasts without a renewal, unless its options set a different time: of a leased message,
// a partition, a relay and a Keeper.
const Default = 15 * time.Second

// Options are the options of a Keeper. Every zero is a default, and a negative number is an error.
type Options struct {
	// Lease is how long a term lasts without a renewal: 100 ms to 1 h; 0 is Default. When a holder dies, a different
	// process follows after Lease + 1.25 × Acquire at most.
	Lease time.Duration
	// Renew is how often the holder renews, and how long a try may take; 0 is Lease/3, at most 5 s; at most Lease/3.
	Renew   time.Duration
	Acquire time.Duration // how often others bid, ± a quarter; 0 is Lease/3, at most 5 s
	// Margin is how long before the database the holder gives up; 0 is Lease/10, at most 1 s; at most Lease/3.
	Margin time.Duration
	// Stop is how long the lease is renewed while the function returns after its context ended; 0 is 30 s.
	Stop time.Duration

	// Holder names this process in the table. "" is $EDDA_HOLDER, or else the name of the host. A random part is
	// always added.
	Holder string
	DB     DB           // for bids and renewals; nil is a connection of the Keeper's own. Work must not use it
	Logger *slog.Logger // nil is slog.Default()
}

const (
	shortest    = 100 * time.Millisecond
	longest     = time.Hour
	leastRenews = 3 // renewals in a Lease, so that a term survives a failed one
)

func (o Options) withDefaults() (Options, error) {
	var f option.Faults
	f.Duration("Lease", &o.Lease, Default, shortest, longest)
	if o.Renew > o.Lease/leastRenews {
		f.Add(fmt.Errorf("Renew is %v and Lease is %v, want a Lease of %d × Renew or more: one missed renewal "+
			"must not end a term", o.Renew, o.Lease, leastRenews))
	}
	f.Duration("Renew", &o.Renew, min(5*time.Second, o.Lease/leastRenews), 0, longest)
	f.Duration("Acquire", &o.Acquire, min(5*time.Second, o.Lease/3), 0, longest)
	f.Duration("Margin", &o.Margin, min(time.Second, o.Lease/10), 0, o.Lease/3)
	f.Duration("Stop", &o.Stop, 30*time.Second, 0, 24*time.Hour)
	option.Default(&o.Logger, slog.Default())
	var err error
	o.Holder, err = Holder(o.Holder)
	f.Add(err)
	return o, f.Err()
}
