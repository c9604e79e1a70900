package bus

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/engine/batch"
)

// CleanNow does at once what endpoints do now and then.
func CleanNow(ctx context.Context, b *Bus) { b.cleaner.cleanOnce(ctx) }

// StoreName is how the counters name a store.
var StoreName = batch.StoreName

// RenewNow does at once what endpoints do every few seconds: it learns of deaths, and which queues are in quarantine.
func RenewNow(ctx context.Context, b *Bus) error {
	return b.session.Renew(ctx)
}

// LookAroundFor sets how long a batch may look for dead processes.
func LookAroundFor(b *Bus, d time.Duration) { b.session.LookFor = d }

// Session is the id of this process's session.
func Session(b *Bus) string { return b.session.ID.String() }

// SessionSQL are the statements of this process's session.
func SessionSQL(b *Bus) pg.Statements { return b.session.SQL }

// Watched is how many instances are looked at.
func Watched(b *Bus) int { return b.watches.Len() }

// TransactionsWatched is how many transactions of InTx and InSQL are open, as far as wake-ups are concerned.
func TransactionsWatched(b *Bus) int {
	return b.notifier.Collecting()
}

// Urgent reports whether a watch will look at an instance before its time.
func Urgent(b *Bus, name, key string) bool { return b.watches.Urgent(name, key) }

// Channel is where wake-ups are sent.
func Channel(b *Bus) string { return b.schema.Channel() }

// WakeAllNow sends one wake-up for all queues that the process knows, and returns when it is sent.
func WakeAllNow(ctx context.Context, b *Bus) {
	known, err := b.routes.Get(ctx, b.pool)
	if err != nil {
		panic(err)
	}
	b.notifier.WakeAll(ctx, slices.Collect(maps.Keys(known.ByID)))
}

// CleanInTurnNow cleans up unless another process did so a short while ago.
func CleanInTurnNow(ctx context.Context, b *Bus) { b.cleaner.cleanInTurn(ctx) }

// LookForPinNow does at once what endpoints do every few seconds.
func LookForPinNow(ctx context.Context, b *Bus) { b.cleaner.lookForPin(ctx) }

// LookForPinsEvery sets how often endpoints that start from now on look for a pin.
func LookForPinsEvery(b *Bus, d time.Duration) { b.cleaner.look = d }

// PinSince sets how long ago the looks of b have first found the pin that they found last.
func PinSince(b *Bus, d time.Duration) { b.cleaner.pinned = time.Now().Add(-d) }

// PinLease is how the lease is called that says which process warns of a pin.
const PinLease = pinLease

// QueueSQL is a statement for the queue of an endpoint, as it is compiled in: a test that reads the file would pass
// over a mutant of it.
func QueueSQL(b *Bus, kind, endpoint, name string) (string, error) {
	q, err := b.routes.Current().Command(kind, endpoint)
	if err != nil {
		return "", err
	}
	return q.SQL(name), nil
}

// Limited reports whether an endpoint observes a limit.
func Limited(e *Endpoint) bool { return e.permits.limited.Load() }

// SlotsAfterMissed reports whether an endpoint that runs looks for a free slot of its limit after notifications may
// have been lost.
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
