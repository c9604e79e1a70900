package outbox

import (
	"errors"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/internal/store/version"
)

var (
	// ErrBehind is the error that a Forward returns for a message that it did not forward, because an earlier message
	// failed. It does not count as an attempt.
	ErrBehind = errors.New("not tried, because an earlier message failed")
	// ErrRunning means that Run was called while another Run of the same endpoint or relay was running.
	ErrRunning = errors.New("the endpoint is already running")
)

// cannotGoOn reports whether only an operator can remove the cause of err. Other errors pass with time.
func cannotGoOn(err error) bool {
	for _, known := range []error{queue.ErrNotInstalled, version.ErrNotMigrated, version.ErrTooNew} {
		if errors.Is(err, known) {
			return true
		}
	}
	return pgerr.Incurable(err)
}
