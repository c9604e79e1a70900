package bus

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/outcome"
)

// CleanNow runs at once the clean-up that endpoints run about every ten minutes.
func CleanNow(ctx context.Context, b *Bus) { b.cleaner.cleanOnce(ctx) }

// StoreName returns the name of a store in the counters.
var StoreName = outcome.StoreName

// RenewNow does at once the work that endpoints do every few seconds: it reads which processes have died, and which
// queues are in quarantine.
func RenewNow(ctx context.Context, b *Bus) error {
	return b.session.Renew(ctx)
}

// LookAroundFor sets how long a batch may search for dead processes.
func LookAroundFor(b *Bus, d time.Duration) { b.session.LookFor = d }

// Session returns the id of this process's session.
func Session(b *Bus) string { return b.session.ID.String() }

// SessionSQL returns the statements of this process's session.
func SessionSQL(b *Bus) pg.Statements { return b.session.SQL }

// Watched returns the number of instances that watches follow.
func Watched(b *Bus) int { return b.watches.Len() }

// TransactionsWatched returns the number of open transactions of InTx of Bus and SQL that collect wake-ups.
func TransactionsWatched(b *Bus) int {
	return b.notifier.Collecting()
}

// Urgent reports whether a watch will read an instance before its regular time.
func Urgent(b *Bus, name, key string) bool { return b.watches.Urgent(name, key) }

// Channel returns the channel of wake-ups.
func Channel(b *Bus) string { return b.schema.Channel() }

// WakeAllNow sends one wake-up for all queues of the routes that the process has read, and returns when it is sent.
func WakeAllNow(ctx context.Context, b *Bus) {
	known, err := b.routes.Get(ctx, b.pool)
	if err != nil {
		panic(err)
	}
	b.notifier.WakeAll(ctx, slices.Collect(maps.Keys(known.ByID)))
}

// CleanInTurnNow cleans up unless another process did so a short while ago.
func CleanInTurnNow(ctx context.Context, b *Bus) { b.cleaner.cleanInTurn(ctx) }

// LookForPinNow runs at once the search that endpoints run every few seconds.
func LookForPinNow(ctx context.Context, b *Bus) { b.cleaner.lookForPin(ctx) }

// LookForPinsEvery sets how often endpoints that start from now on search for a pin.
func LookForPinsEvery(b *Bus, d time.Duration) { b.cleaner.look = d }

// PinSince sets how long ago b first found its last pin.
func PinSince(b *Bus, d time.Duration) { b.cleaner.pinned = time.Now().Add(-d) }

// PinLease is the name of the lease whose holder warns of a pin.
const PinLease = pinLease

// QueueSQL returns a statement for the queue of an endpoint, as it is compiled in: a test that reads the file would
// miss a mutant of it.
func QueueSQL(b *Bus, kind, endpoint, name string) (string, error) {
	q, err := b.routes.Current().Command(kind, endpoint)
	if err != nil {
		return "", err
	}
	return q.SQL(name), nil
}

// Limited reports whether an endpoint observes a limit.
func Limited(e *Endpoint) bool { return e.permits.limited.Load() }

// SlotsAfterMissed reports whether a running endpoint checks for a free slot of its limit after notifications may have
// been lost.
func SlotsAfterMissed(e *Endpoint) bool {
	looks := func() bool {
		select {
		case <-e.permits.changed:
			return true
		default:
			return false
		}
	}
	looks()
	e.bus.hub.Missed()
	return looks()
}
