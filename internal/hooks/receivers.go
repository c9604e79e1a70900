package hooks

import (
	"fmt"
	"log/slog"

	"github.com/edda-go/edda/event"
)

// Receivers are functions of the user's that get events. Each may be nil. A panic of one is logged, and the process
// continues.
type Receivers struct {
	Events func(event.Event)
	Rare   func(event.Event) // every event except Handled
	Log    *slog.Logger

	events, rare Panics
}

// Emit gives e to the receivers that want it.
func (r *Receivers) Emit(e event.Event) {
	if r.Events != nil {
		r.give(e, r.Events, &r.events, "edda: Options.Events panicked")
	}
	if r.Rare == nil {
		return
	}
	if _, handled := e.(event.Handled); !handled {
		r.give(e, r.Rare, &r.rare, "edda: Options.Rare panicked")
	}
}

func (r *Receivers) give(e event.Event, to func(event.Event), panics *Panics, text string) {
	defer func() {
		if v := recover(); v != nil {
			panics.Log(v, r.Log, text, "event", fmt.Sprintf("%T", e))
		}
	}()
	to(e)
}

// Any reports whether there is a receiver.
func (r *Receivers) Any() bool { return r.Events != nil || r.Rare != nil }

// WantHandled reports whether a receiver gets Handled, which is the event of most messages.
func (r *Receivers) WantHandled() bool { return r.Events != nil }
