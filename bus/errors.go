package bus

import (
	"errors"

	"github.com/edda-go/edda/internal/batch"
	"github.com/edda-go/edda/internal/dedup"
	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/leased"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/outbox"
)

// What a caller can act on.
var (
	// ErrNoRoute: no endpoint of this database consumes the kind, or the named endpoint does not exist.
	ErrNoRoute = queue.ErrNoRoute
	// ErrAmbiguous: several endpoints consume the kind, so a command does not know where to go.
	ErrAmbiguous = queue.ErrAmbiguous
	// ErrIDConflict: the id of the message was used before, with another content. The first is kept.
	ErrIDConflict = dedup.ErrConflict
	// ErrOtherDatabase: the transaction given to SendTx is not of the bus's database and schema.
	ErrOtherDatabase = queue.ErrOtherDatabase
	// ErrNotInstalled: the endpoint's queue does not exist and may not be created here.
	ErrNotInstalled = queue.ErrNotInstalled
	// ErrDrain: Run had to cancel handlers that did not end within Drain. Their messages are still in the queue.
	ErrDrain = outbox.ErrDrain
	// ErrClaimLost is the cause of the end of a leased handler's context whose message may be in other hands: the
	// lease could not be extended in time. Whatever the handler returns, nothing of it is written.
	ErrClaimLost = leased.ErrClaimLost
	// ErrCancelled is the cause of the end of a leased handler's context whose message was cancelled by
	// operate.Messages.Cancel, or whose run is over.
	ErrCancelled = leased.ErrCancelled
	// ErrRunning: Run was called while another Run of the endpoint goes on.
	ErrRunning = outbox.ErrRunning
	// ErrConflict is the error of a message that lost its instance to others more often than its budget allows.
	ErrConflict = delivery.ErrConflict
	// ErrMissing is the error of a message that found no instance, where the saga says that this is a failure.
	ErrMissing = batch.ErrMissing
	// ErrUnknownKind is the error of a message whose kind no program understood for UnknownKindTimeout.
	ErrUnknownKind = delivery.ErrUnknownKind
	// ErrProcessDied is the error of a message with which processes died, again and again.
	ErrProcessDied = delivery.ErrProcessDied
	// ErrBehind is what a Forward returns for a message that it did not give to the other side, because one before it
	// failed. It is no attempt.
	ErrBehind = outbox.ErrBehind
)

// OutcomeUnknownError says that the connection broke during a commit, see outbox.OutcomeUnknownError.
type OutcomeUnknownError = outbox.OutcomeUnknownError

func isNoRoute(err error) bool { return errors.Is(err, ErrNoRoute) }
