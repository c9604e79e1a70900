package messages_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate/messages"
	"github.com/edda-go/edda/saga"
)

// The part that the example leaves out: the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

// An operator sends a message that a different system has lost. With an ID it is written once, however often it is
// sent.
func ExampleNew() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	operator, err := messages.New(pool, "")
	check(err)
	id, err := saga.ParseID("01890a5d-ac96-774b-bcce-b302099a8057")
	check(err)
	for range 2 {
		sent, err := operator.Send(ctx, messages.Message{ID: id, Kind: "card.charge", Body: []byte(`{"order":"7"}`),
			Reason: "the shop lost it"})
		check(err)
		fmt.Println("duplicate:", sent.Duplicate)
	}
	// Output:
	// duplicate: false
	// duplicate: true
}
