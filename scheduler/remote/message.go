package remote

import (
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// IdempotencyKey is the name of metadata that are the same for everything that is one piece of work: the id of the run,
// in all its attempts, or that of a message that no manifest emitted.
const IdempotencyKey = "idempotency_key"

// runKeys are the metadata that name the run of a submission. A message that no manifest emitted has none of them. They
// do not begin with "edda-": an intake of another database drops such names of a run, and so hands on these.
var runKeys = names{kind: "metadata", id: "edda_run", attempt: "edda_run_attempt", manifest: "edda_manifest",
	due: "edda_due", token: "edda_run_token"}

// RunOfMessage reads the run of a message that Publish has published. An error names the metadata that are missing or
// wrong.
func RunOfMessage(m *message.Message) (Run, error) { return runKeys.read(m.Metadata.Get) }

// newMessage makes the submission of a message. A header of its author under a name of ours does not cross: it would
// name a run.
func newMessage(info *saga.Info, body []byte, token string) *message.Message {
	m := message.NewMessage(info.ID.String(), body)
	for name, value := range outbox.Envelope(info) {
		m.Metadata[name] = value
	}
	for _, name := range []string{runKeys.id, runKeys.attempt, runKeys.manifest, runKeys.due, runKeys.token} {
		delete(m.Metadata, name)
	}
	m.Metadata[watermill.KindKey] = info.Kind
	m.Metadata[IdempotencyKey] = info.ID.String()
	if f := info.Firing; f != nil {
		m.Metadata[IdempotencyKey] = f.Run.String()
		runKeys.write(m.Metadata.Set, f, token)
	}
	return m
}
