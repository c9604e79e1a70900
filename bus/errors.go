package bus

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/leased"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// Errors that a caller can act on.
var (
	// ErrNoRoute: no endpoint of this database consumes the kind, or the named endpoint does not exist.
	ErrNoRoute = queue.ErrNoRoute
	// ErrAmbiguous: several endpoints consume the kind, so a command has no single destination. See Options.Routes.
	ErrAmbiguous = queue.ErrAmbiguous
	// ErrIDConflict: the id of the message was used before, with different content. The first message is kept.
	ErrIDConflict = dedup.ErrConflict
	// ErrOtherDatabase: the transaction given to SendTx is not of the bus's database and schema.
	ErrOtherDatabase = queue.ErrOtherDatabase
	// ErrNotInstalled: the endpoint's queue does not exist, and Options.AutoInstall is not set.
	ErrNotInstalled = queue.ErrNotInstalled
	// ErrDrain: Run had to cancel handlers that did not end within Drain. Their messages are still in the queue.
	ErrDrain = run.ErrDrain
	// ErrClaimLost is the cause that ends a leased handler's context if the lease could not be extended in time, so
	// that another process may have the message. The bus writes nothing that the handler sends, whatever it returns.
	ErrClaimLost = leased.ErrClaimLost
	// ErrCancelled is the cause that ends a leased handler's context if operate.Messages.Cancel has cancelled the
	// message, or its run is over.
	ErrCancelled = leased.ErrCancelled
	// ErrRunning: Run was called during a Run of the same endpoint.
	ErrRunning = outbox.ErrRunning
	// ErrConflict is the error of a message that lost more saves than EndpointOptions.MaxConflicts.
	ErrConflict = message.ErrConflict
	// ErrMissing is the error of a message that found no instance, if the saga treats that as a failure.
	ErrMissing = message.ErrMissing
	// ErrUnknownKind is the error of a message whose kind no program handled for UnknownKindTimeout.
	ErrUnknownKind = message.ErrUnknownKind
	// ErrProcessDied is the error of a message that MaxCrashes processes crashed with.
	ErrProcessDied = message.ErrProcessDied
)

// OutcomeUnknownError means that the connection broke during a commit: of a send, of an Ingest, or of a transaction of
// InTx. The messages may or may not be in the queue. ID is the id of the send, zero for a transaction. A send with an
// id of saga.WithID may be repeated for seven days; repeating any other send may make a second message.
type OutcomeUnknownError struct {
	ID  saga.ID
	Err error
}

func (e *OutcomeUnknownError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("the outcome of the transaction is unknown "+
			"(messages with an id from saga.WithID may be sent again): %v", e.Err)
	}
	return fmt.Sprintf("the outcome of sending message %s is unknown "+
		"(a send with an id from saga.WithID may be repeated): %v", e.ID, e.Err)
}

func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

func isNoRoute(err error) bool { return errors.Is(err, ErrNoRoute) }
