package compensation

import (
	"slices"
	"testing"

	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

type trip struct {
	*sagatest.Run
	t *testing.T
}

func begin(t *testing.T) trip {
	t.Helper()
	r := trip{Run: sagatest.New(t, Trips), t: t}
	r.ok(r.Deliver(BookTrip{Trip: "7"}))
	r.sends(book("flight"))
	return r
}

func book(part string) Book { return Book{Trip: "7", Part: part} }
func undo(part string) Undo { return Undo{Trip: "7", Part: part} }

func (r trip) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r trip) sends(want ...saga.Message) {
	r.t.Helper()
	if got := r.Sent(); !slices.Equal(got, want) {
		r.t.Fatalf("sent %v, want %v", got, want)
	}
}

// answer answers a message, and checks the messages that the trip sends then.
func (r trip) answer(to, m saga.Message, want ...saga.Message) {
	r.t.Helper()
	r.ok(r.Reply(to, m))
	r.sends(want...)
}

func (r trip) ends() {
	r.t.Helper()
	if r.Live("7") {
		r.t.Error("the trip is not over")
	}
}

func TestTripIsBooked(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.ok(r.Deliver(BookTrip{Trip: "7"})) // a second click
	r.sends()
	r.answer(book("flight"), Booked{"flight"}, book("hotel"))
	r.answer(book("hotel"), Booked{"hotel"}, book("car"))
	r.answer(book("car"), Booked{"car"}, TripBooked{"7"})
	r.ends()
	r.ok(r.Deliver(BookTrip{Trip: "7"})) // a late copy
	r.sends()
}

func TestRefusedTripIsUndoneBackwards(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.answer(book("flight"), Booked{"flight"}, book("hotel"))
	r.answer(book("hotel"), Booked{"hotel"}, book("car"))
	r.answer(book("car"), Refused{"car"}, undo("hotel"))
	r.answer(undo("hotel"), Undone{"hotel"}, undo("flight"))
	r.answer(undo("flight"), Undone{"flight"}, TripFailed{"7"})
	r.ends()
}

// A part without an answer may be booked: it is undone too, and its late answer changes nothing.
func TestUnansweredPartIsUndone(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.answer(book("flight"), Booked{"flight"}, book("hotel"))
	r.ok(r.Advance(answerWithin))
	r.sends(undo("hotel"))
	r.answer(book("hotel"), Booked{"hotel"})
	r.answer(undo("hotel"), Undone{"hotel"}, undo("flight"))
	r.answer(undo("flight"), Undone{"flight"}, TripFailed{"7"})
	r.ends()
}

// Each part has the whole time, and a trip that undoes has no timeout.
func TestTimeoutIsThatOfTheLastPart(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.ok(r.Advance(answerWithin / 2))
	r.answer(book("flight"), Booked{"flight"}, book("hotel"))
	r.ok(r.Advance(answerWithin / 2))
	r.sends()
	r.answer(book("hotel"), Refused{"hotel"}, undo("flight"))
	r.ok(r.Advance(answerWithin))
	r.sends()
}
