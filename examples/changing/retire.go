package changing

import (
	"context"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Greet requests a letter that is not written any more.
type Greet struct {
	Email string `json:"email"`
}

// Kind is the name of Greet.
func (Greet) Kind() string { return "letter.greet" }

// Remind requests a reminder.
type Remind Greet

// Kind is the name of Remind.
func (Remind) Kind() string { return "letter.remind" }

func writeReminder(*bus.Context, pgx.Tx, Remind) error { return nil }

// page discard
// noGreeting ends the messages that are still under way.
func noGreeting(*bus.Context, pgx.Tx, Greet) error {
	return saga.Discard("greetings are not written any more")
}

// end

// page retire
// retire ends the delivery of a kind that the endpoint no longer handles.
func retire(ctx context.Context, letters *bus.Endpoint) error {
	return letters.Unsubscribe(ctx, Greet{}.Kind())
}

// end
