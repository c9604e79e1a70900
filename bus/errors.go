package bus

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/saga"
)

// What a caller can act on.
var (
	// ErrNoRoute: no endpoint of this database consumes the kind, or the named endpoint does not exist.
	ErrNoRoute = queue.ErrNoRoute
	// ErrAmbiguous: several endpoints consume the kind, so a command does not know where to go.
	ErrAmbiguous = queue.ErrAmbiguous
	// ErrIDConflict: the id of the message was used before, with another content. The first is kept.
	ErrIDConflict = errors.New("the message id was used before with another content")
	// ErrOtherDatabase: the transaction given to SendTx is not of the bus's database and schema.
	ErrOtherDatabase = queue.ErrOtherDatabase
	// ErrNotInstalled: the endpoint's queue does not exist and may not be created here.
	ErrNotInstalled = queue.ErrNotInstalled
	// ErrDrain: Run had to cancel handlers that did not end within Drain. Their messages are still in the queue.
	ErrDrain = errors.New("handlers did not end in time and were cancelled")
	// ErrClaimLost is the cause of the end of a leased handler's context whose message may be in other hands: the
	// lease could not be extended in time. Whatever the handler returns, nothing of it is written.
	ErrClaimLost = errors.New("the claim on the message was lost")
	// ErrCancelled is the cause of the end of a leased handler's context whose message was cancelled by
	// operate.Operator.Cancel, or whose run is over.
	ErrCancelled = errors.New("cancelled")
	// ErrRunning: Run was called while another Run of the endpoint goes on.
	ErrRunning = errors.New("the endpoint is already running")
	// ErrConflict is the error of a message that lost its instance to others more often than its budget allows.
	ErrConflict = errors.New("somebody else changed the saga instance first, too often")
	// ErrMissing is the error of a message that found no instance, where the saga says that this is a failure.
	ErrMissing = errors.New("there is no saga instance for it")
	// ErrUnknownKind is the error of a message whose kind no program understood for UnknownFor.
	ErrUnknownKind = errors.New("no program that consumes this queue knows its kind")
	// ErrProcessDied is the error of a message with which processes died, again and again.
	ErrProcessDied = errors.New("the process died while it handled the message")
)

// OutcomeUnknownError says that the connection broke while a send, or a transaction of InTx or InSQL, was being
// committed: it may be in the queue, or not. ID is that of the send, and zero for a transaction. When the send was
// given its id by saga.WithID, sending the same again is safe for seven days. Without that the id was not remembered,
// and sending again may make a second message.
type OutcomeUnknownError struct {
	ID  saga.ID
	Err error
}

func (e *OutcomeUnknownError) Error() string {
	if e.ID.IsZero() {
		return fmt.Sprintf("the outcome of the transaction is unknown (what it sent with ids given by saga.WithID "+
			"may be sent again): %v", e.Err)
	}
	return fmt.Sprintf("the outcome of sending message %s is unknown (a send that was given its id by saga.WithID "+
		"may be repeated): %v", e.ID, e.Err)
}

func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

func isNoRoute(err error) bool { return errors.Is(err, ErrNoRoute) }
