package remote_test

import (
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// The program with the database takes reports on runs, by a Router of Watermill.
func ExampleNewMessageHandler() {
	_, pool, end := openPool()
	defer end()
	reports, err := scheduler.NewReports(pool, "")
	check(err)
	handler := remote.NewMessageHandler(reports, remote.HandlerOptions{Logger: slog.New(slog.DiscardHandler)})
	// router.AddConsumerHandler("runs", "runs.ended", subscriber, handler)

	report := message.NewMessage("7", []byte( // a remote.MessageClient makes it
		`{"run": "01890a5d-ac96-774b-bcce-b302099a8057", "attempt": 1, "outcome": "succeeded"}`))
	fmt.Println(handler(report)) // there is no such run, and no repetition would help
	// Output: <nil>
}
