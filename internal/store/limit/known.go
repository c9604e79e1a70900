package limit

import (
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/run"
)

// Known is what a process knows of one limit.
type Known struct {
	Store   *Store
	Set     *atomic.Bool // there is a limit; once true it stays so
	Changed run.Nudge    // it has changed, or a slot is free
}
