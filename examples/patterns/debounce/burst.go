package debounce

import (
	"time"

	"github.com/edda-go/edda/saga"
)

// page burst

const (
	quiet   = 2 * time.Second  // without an edit, and the burst is over
	longest = 30 * time.Second // at most, for a document that is edited all the time
)

// Burst is the state of a document while it is edited.
type Burst struct {
	Deadline time.Time `json:"deadline"`
}

func (b *Burst) edit(ctx *saga.Context, _ Edited) error {
	if ctx.IsNew() {
		b.Deadline = ctx.Now().Add(longest)
	}
	at := ctx.Now().Add(quiet)
	if at.After(b.Deadline) {
		at = b.Deadline
	}
	ctx.TimeoutAt(at, Quiet{}, saga.Named("quiet")) // moves the timeout of the previous edit
	return nil
}

func (b *Burst) end(ctx *saga.Context, _ Quiet) error {
	ctx.Send(Index{Document: ctx.Key()})
	ctx.Complete()
	return nil
}

// Bursts has an instance for each document that is being edited.
var Bursts = saga.Define("burst", saga.Options{},
	saga.StartedBy(func(m Edited) string { return m.Document }, (*Burst).edit),
	saga.OnTimeout((*Burst).end))

// end
