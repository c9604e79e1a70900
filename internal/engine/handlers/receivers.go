package handlers

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/edda-go/edda/event"
)

// Receivers are functions of the user that get events. Each may be nil. If a call panics, ends its goroutine or does
// not return within Patience, that is logged, and the process continues; a function that has not returned gets no
// events until it has.
type Receivers struct {
	Events func(event.Event)
	Rare   func(event.Event) // every event except Handled
	Log    *slog.Logger

	events, rare receiver
}

type receiver struct {
	guest  Guest
	faults Faults
}

// Emit gives events, of one transaction if there are several, to the receivers that want them.
func (r *Receivers) Emit(all ...event.Event) {
	if err := r.events.give(all, r.Events); err != nil {
		r.events.faults.Log(err, r.Log, "edda: Options.Events failed")
	}
	if err := r.rare.give(rare(all), r.Rare); err != nil {
		r.rare.faults.Log(err, r.Log, "edda: Options.Rare failed")
	}
}

// rare returns the events that Rare gets.
func rare(all []event.Event) []event.Event {
	isHandled := func(e event.Event) bool { _, is := e.(event.Handled); return is }
	if !slices.ContainsFunc(all, isHandled) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), isHandled)
}

// give passes events to one function. If the function fails for one event, it still gets the others.
func (r *receiver) give(all []event.Event, to func(event.Event)) (wrong error) {
	if to == nil || len(all) == 0 {
		return nil
	}
	next := new(atomic.Int64)
	for int(next.Load()) < len(all) {
		_, err := Ask(&r.guest, Patience, func() (none struct{}) {
			for int(next.Load()) < len(all) {
				to(all[next.Add(1)-1])
			}
			return none
		})
		if errors.Is(err, ErrAway) {
			return err
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// Any reports whether there is a receiver.
func (r *Receivers) Any() bool { return r.Events != nil || r.Rare != nil }

// WantHandled reports whether a receiver gets Handled, the most frequent event.
func (r *Receivers) WantHandled() bool { return r.Events != nil }
