package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/settings"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5"
)

// NewRelay makes a relay of the queue called name, which is subscribed to kinds: commands and events of these kinds
// go there. Without kinds it receives only messages that name it (saga.To). NewRelay checks everything that needs no
// database, and returns an error that lists every fault.
func NewRelay(
	b *Bus, name string, o outbox.RelayOptions, forward outbox.Forward, kinds ...string,
) (*outbox.Relay, error) {
	if b == nil {
		return nil, fmt.Errorf("relay %.80q: the bus is nil", name)
	}
	return outbox.NewRelay(b.border, name, o, forward, kinds...)
}

// Ingest writes messages into the queues of this database, in one transaction. An id of a source is taken once for as
// long as the inbox keeps it: seven days, or the time that "edda inbox keep" has set. Messages for one queue are due
// in the order given. Concurrent calls with the same ids wait for each other. Ingest is safe for concurrent use.
//
// A message that this bus cannot carry becomes a dead letter, once, and does not stop the other messages: an invalid
// kind, size or header, an envelope of a newer version, or an id that came before with a different kind or body.
// Errors: ErrNotInstalled for an endpoint that has no queue; saga.ErrTooLarge, before any message is written, if a
// message has a body of more than 16 MiB, or headers of more than 2 MiB together, which no queue holds; an
// *OutcomeUnknownError when the connection broke during the commit; other errors of the database. After an error
// of the database ingest all of the messages again: that is always safe for messages with an ID.
func (b *Bus) Ingest(
	ctx context.Context, o outbox.IngestOptions, messages ...outbox.IngestMessage,
) ([]outbox.IngestResult, error) {
	results, err := b.border.Ingest(ctx, o, messages...)
	if unknown := (*pgerr.UnknownOutcome)(nil); errors.As(err, &unknown) {
		err = &OutcomeUnknownError{ID: unknown.ID, Err: unknown.Err}
	}
	return results, err
}

// InboxTx is for your own consumers of a broker: it records, in the transaction of their effects, that the message id
// from source has come. fresh is false if it had come before: then do nothing, and acknowledge the message to the
// broker. InboxTx waits while a concurrent transaction has recorded the same id. Call it before any statement that
// changes a row, so that two transactions rarely wait for each other; Postgres ends one of them with 40P01.
//
// Programs without this package call the SQL function received. The runtime role may execute it.
func (b *Bus) InboxTx(ctx context.Context, tx pgx.Tx, source, id string) (fresh bool, err error) {
	if tx == nil {
		return false, fmt.Errorf("note message %.80q from %.80q: %w", id, source, errNilTx)
	}
	if fresh, err = b.border.Store.InboxTx(ctx, tx, source, id); err != nil {
		return false, fmt.Errorf("note message %.80q from %.80q: %w", id, source, pgerr.Explain(err))
	}
	return fresh, nil
}

// newBorder makes the part of the bus that relays and Ingest use.
func (b *Bus) newBorder() *outbox.Border {
	return outbox.NewBorder(outbox.BorderOptions{
		Pool: b.pool, Schema: b.schema, Store: outbox.New(b.schema), History: b.tables.history,
		Routes: b.routes, Hub: b.hub, Notifier: b.notifier,
		Leases: b.tables.leases, Letters: b.tables.letters,
		Process: borderProcess{b}, Runs: b.tables.runs, Settings: b.relaySettings, Log: b.log, Outage: b.outage,
		Events: b.hooks.Emit, Hooks: b.hooks.Hooks, AutoInstall: b.autoInstall, PollOnly: b.wakeup == PollOnly,
	})
}

// borderProcess implements outbox.Process.
type borderProcess struct{ bus *Bus }

func (p borderProcess) Join(ctx context.Context, queue int, left func() int) (leave func(), err error) {
	return p.bus.join(ctx, queue, left)
}

func (p borderProcess) OpenPool(ctx context.Context, idle time.Duration) (*pg.Pool, error) {
	return openPool(ctx, p.bus.workerConfig(idle))
}

func (p borderProcess) CheckPool(ctx context.Context, idle time.Duration) error {
	_, err := p.bus.look(ctx, p.bus.workerConfig(idle))
	return err
}

// relaySettings returns the settings that apply to a relay, which has no workers.
func (b *Bus) relaySettings(relay string, poll time.Duration) *settings.Follower {
	return b.newFollower(relay, poll, func(before, now settings.Settings) { emitPause(b, before, now) })
}
