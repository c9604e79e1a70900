package broker

import (
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/report"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler/remote"
)

// IdempotencyKey is the name of metadata that are the same for everything that is one piece of work: the id of the run,
// in all its attempts, or that of a message that no manifest emitted.
const IdempotencyKey = "idempotency_key"

// runKeys are the metadata that name the run of a submission. A message that no manifest emitted has none of them. They
// do not begin with "edda-": an intake of another database drops such names of a run, and so hands on these.
var runKeys = report.Names{Kind: "metadata", ID: "edda_run", Attempt: "edda_run_attempt", Manifest: "edda_manifest",
	Due: "edda_due", Token: "edda_run_token"}

// RunOf reads the run of a message that Submit has published. An error names the metadata that are missing or wrong.
func RunOf(m *message.Message) (remote.Run, error) {
	run, err := runKeys.Read(m.Metadata.Get)
	if err != nil {
		return remote.Run{}, fmt.Errorf("read a run: %w", err)
	}
	return remote.Run(run), nil
}

// newMessage makes the submission of a message. A header of its author under a name of ours does not cross: it would
// name a run.
func newMessage(info *saga.Info, body []byte, token string) *message.Message {
	m := message.NewMessage(info.ID.String(), body)
	for name, value := range outbox.Envelope(info) {
		m.Metadata[name] = value
	}
	for _, name := range []string{runKeys.ID, runKeys.Attempt, runKeys.Manifest, runKeys.Due, runKeys.Token} {
		delete(m.Metadata, name)
	}
	m.Metadata[watermill.KindKey] = info.Kind
	m.Metadata[IdempotencyKey] = info.ID.String()
	if f := info.Fire; f != nil {
		m.Metadata[IdempotencyKey] = f.Run.String()
		runKeys.Write(m.Metadata.Set, f, token)
	}
	return m
}
