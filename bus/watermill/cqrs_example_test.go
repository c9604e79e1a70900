package watermill_test

import (
	"fmt"

	"github.com/edda-go/edda/bus/watermill"
)

type BookRoom struct {
	Room string `json:"room"`
}

func (BookRoom) Kind() string { return "room.book" }

// Commands of Watermill's CQRS component have the names of their kinds, so that sagas send and handle them too.
func ExampleNewCQRSMarshaler() {
	marshaler := watermill.NewCQRSMarshaler()
	m, err := marshaler.Marshal(BookRoom{Room: "7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(marshaler.NameFromMessage(m), string(m.Payload))
	// Output: room.book {"room":"7"}
}
