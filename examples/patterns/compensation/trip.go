package compensation

import (
	"time"

	"github.com/edda-go/edda/saga"
)

const answerWithin = time.Minute

// page state

const remembered = 7 * 24 * time.Hour // how long a late copy of BookTrip books nothing

var parts = []string{"flight", "hotel", "car"}

// Trip is the state: the requested parts, in order. Until its answer arrives it is unknown whether the last is booked.
type Trip struct {
	Asked   []string `json:"asked"`
	Undoing bool     `json:"undoing"`
}

func (t *Trip) last() string {
	if len(t.Asked) == 0 {
		return ""
	}
	return t.Asked[len(t.Asked)-1]
}

// Trips books the parts in order, and undoes them in reverse order if a part is refused.
var Trips = saga.Define("trip", saga.Options{Remember: remembered},
	saga.StartedBy(func(m BookTrip) string { return m.Trip }, (*Trip).begin),
	saga.OnReply((*Trip).booked), saga.OnReply((*Trip).refused), saga.OnReply((*Trip).undone),
	saga.OnTimeout((*Trip).unanswered))

// end

// page forward

func (t *Trip) begin(ctx *saga.Context, _ BookTrip) error {
	if ctx.IsNew() {
		t.book(ctx)
	}
	return nil
}

func (t *Trip) book(ctx *saga.Context) {
	next := parts[len(t.Asked)]
	t.Asked = append(t.Asked, next)
	ctx.Send(Book{Trip: ctx.Key(), Part: next})
	ctx.Timeout(answerWithin, NoAnswer{}, saga.Named("answer")) // moves that of the part before
}

func (t *Trip) booked(ctx *saga.Context, m Booked) error {
	switch {
	case t.Undoing || m.Part != t.last():
		return nil // it came late, and its Undo is sent; or it came twice
	case len(t.Asked) < len(parts):
		t.book(ctx)
	default:
		ctx.Publish(TripBooked{Trip: ctx.Key()})
		ctx.Complete()
	}
	return nil
}

// end

// page backward

func (t *Trip) refused(ctx *saga.Context, m Refused) error {
	if t.Undoing || m.Part != t.last() {
		return nil
	}
	t.Asked = t.Asked[:len(t.Asked)-1] // of this part there is nothing to undo
	return t.undo(ctx)
}

func (t *Trip) unanswered(ctx *saga.Context, _ NoAnswer) error { return t.undo(ctx) }

func (t *Trip) undo(ctx *saga.Context) error {
	t.Undoing = true
	ctx.CancelTimeout("answer")
	if len(t.Asked) > 0 {
		ctx.Send(Undo{Trip: ctx.Key(), Part: t.last()})
		return nil
	}
	ctx.Publish(TripFailed{Trip: ctx.Key()})
	ctx.Complete()
	return nil
}

func (t *Trip) undone(ctx *saga.Context, m Undone) error {
	if m.Part != t.last() {
		return nil // it came twice
	}
	t.Asked = t.Asked[:len(t.Asked)-1]
	return t.undo(ctx)
}

// end
