package outbox

import (
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
	"github.com/edda-go/edda/saga"
)

var (
	// ErrBehind is the error that a Forward returns for a message that it did not forward, because an earlier message
	// failed. It does not count as an attempt.
	ErrBehind = errors.New("not tried, because an earlier message failed")
	// ErrDrain means that Run had to cancel calls that did not end within Drain. Their messages are still in the queue.
	ErrDrain = run.ErrDrain
	// ErrRunning means that Run was called while another Run of the same endpoint or relay was running.
	ErrRunning = errors.New("the endpoint is already running")
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

// cannotGoOn reports whether only an operator can remove the cause of err. Other errors pass with time.
func cannotGoOn(err error) bool {
	for _, known := range []error{queue.ErrNotInstalled, version.ErrNotMigrated, version.ErrTooNew} {
		if errors.Is(err, known) {
			return true
		}
	}
	return pgerr.Incurable(err)
}
