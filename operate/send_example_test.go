package operate_test

import (
	"fmt"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// An operator sends a message that a different system has lost. With an ID it is written once, however often it is
// sent.
func ExampleMessages_Send() {
	ctx, pool, end := openPool()
	defer end()
	b, err := bus.New(pool, bus.Options{})
	check(err)
	check(b.InstallQueue(ctx, "bank", "card.charge"))
	operator, err := operate.New(pool, operate.Options{})
	check(err)
	id, err := saga.ParseID("01890a5d-ac96-774b-bcce-b302099a8057")
	check(err)
	for range 2 {
		_, duplicate, err := operator.Messages().Send(ctx, operate.OutgoingMessage{ID: id, Kind: "card.charge",
			Body:   []byte(`{"order":"7"}`),
			Reason: "the shop lost it"})
		check(err)
		fmt.Println("duplicate:", duplicate)
	}
	// Output:
	// duplicate: false
	// duplicate: true
}
