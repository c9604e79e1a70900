package act

import (
	"context"
	"fmt"
	"net/http"

	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// Message returns the forms of a message in the queue of an endpoint.
func Message(id saga.ID, endpoint string) []Form {
	return []Form{cancelMessage.form(values{"id", id.String(), "endpoint", endpoint})}
}

var cancelMessage = &Action{
	Name: "message.cancel", Pattern: "/messages/{id}/cancel", Rights: []Right{Discard}, Button: "Cancel message",
	Says: "Removes the message from its queue and records it as discarded. If a handler is working on it, the " +
		"context of the handler is cancelled.",
	fields: []field{of("id"), of("endpoint"), why}, done: "The message was cancelled.",
	page: func(in Input) string { return "messages/" + segment(in.text("id")) },
	command: func(in Input) string {
		return in.because(shell("edda queue cancel", in.text("endpoint"), in.text("id")))
	},
	check: func(_ context.Context, _ *Desk, in Input) (*Preview, error) {
		return one("This cannot be undone: Edda deletes the body.",
			fmt.Sprintf("Message %s will be cancelled in endpoint %s.", in.text("id"), in.text("endpoint"))), nil
	},
	do: func(ctx context.Context, d *Desk, in Input) (Done, error) {
		id, err := saga.ParseID(in.text("id"))
		if err != nil {
			return Done{}, in.refuse(http.StatusNotFound, "The id of a message is a UUID.")
		}
		_, err = d.Op.Messages().Cancel(ctx, in.text("endpoint"), id, in.Reason())
		return Done{}, err
	},
}

var ofMessages = []*Action{cancelMessage}

// letterOf are the fields of a message to send.
var letterOf = []field{
	{name: "kind", label: "Kind", kind: line, must: true, most: mostName, example: "KIND"},
	{name: "body", label: "Body", kind: area, must: true, most: mostText, hint: "JSON"},
	{name: "delay", label: "Due after", kind: lasting, hint: "such as 10m; empty: at once"},
	why,
}

func sendCommand(in Input) string {
	return in.because(in.flags(shell("edda send", in.text("kind"))+" --body FILE", "delay", "delay"))
}

// send sends a message with the fields of letterOf.
func (d *Desk) send(ctx context.Context, in Input, m operate.OutgoingMessage) (Done, error) {
	if err := in.checkJSON("body"); err != nil {
		return Done{}, err
	}
	m.Kind, m.Body, m.Delay, m.Reason = in.text("kind"), []byte(in.text("body")), in.lasting("delay"), in.Reason()
	id, _, err := d.Op.Messages().Send(ctx, m)
	return Done{Page: "messages/" + id.String()}, err
}
