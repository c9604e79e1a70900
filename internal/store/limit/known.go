package limit

import (
	"sync/atomic"

	"github.com/edda-go/edda/internal/base/run"
)

// Known is the state of one limit in a process.
type Known struct {
	Store   *Store
	Set     *atomic.Bool // the limit exists; once true it stays true
	Changed run.Nudge    // it has changed, or a slot is free
}
