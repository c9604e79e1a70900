package bus

import (
	"github.com/edda-go/edda/internal/wire"
	"github.com/edda-go/edda/saga"
)

// Envelope returns what has to cross a border with a message besides its id, kind and body, so that the other side
// knows what this one does: the user's headers, and who sent it, for which conversation and which instance. Bus.Arrive
// reads it.
//
// The run of a manifest stays behind: it ends in this database, and the other one knows nothing of it.
func Envelope(info *saga.Info) map[string]string { return wire.Envelope(info) }
