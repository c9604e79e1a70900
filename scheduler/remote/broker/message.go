package broker

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler/remote"
)

// The metadata of a submission. They do not begin with "edda-": an intake of another database drops such names of a
// run, and so hands on these.
const (
	RunKey      = "edda_run"         // the id of the run. A message that no manifest emitted has none of these four
	AttemptKey  = "edda_run_attempt" // 1 for the first
	ManifestKey = "edda_manifest"    // which emitted it
	DueKey      = "edda_due"         // of the run, as in RFC 3339

	// IdempotencyKey is the same for everything that is one piece of work: the id of the run, in all its attempts, or
	// that of a message that no manifest emitted.
	IdempotencyKey = "idempotency_key"
)

var errNoRun = errors.New("it is no submission of a run")

// RunOf reads the run of a message that Submit has published. An error names the metadata that are missing or wrong.
func RunOf(m *message.Message) (remote.Run, error) {
	id, err := saga.ParseID(m.Metadata.Get(RunKey))
	if err != nil {
		return remote.Run{}, fmt.Errorf("%w: metadata %s: want a UUID", errNoRun, RunKey)
	}
	attempt, err := strconv.Atoi(m.Metadata.Get(AttemptKey))
	if err != nil || attempt < 1 {
		return remote.Run{}, fmt.Errorf("%w: metadata %s: want a number from 1", errNoRun, AttemptKey)
	}
	due, err := time.Parse(time.RFC3339Nano, m.Metadata.Get(DueKey))
	if err != nil {
		return remote.Run{}, fmt.Errorf("%w: metadata %s: want a time as in RFC 3339", errNoRun, DueKey)
	}
	return remote.Run{ID: id, Attempt: attempt, Manifest: m.Metadata.Get(ManifestKey), Due: due}, nil
}

// newMessage makes the submission of a message. A header of its author under a name of ours does not cross: it would
// name a run.
func newMessage(info *saga.Info, body []byte) *message.Message {
	m := message.NewMessage(info.ID.String(), body)
	for name, value := range outbox.Envelope(info) {
		m.Metadata[name] = value
	}
	for _, name := range []string{RunKey, AttemptKey, ManifestKey, DueKey} {
		delete(m.Metadata, name)
	}
	m.Metadata[watermill.KindKey] = info.Kind
	m.Metadata[IdempotencyKey] = info.ID.String()
	if f := info.Fire; f != nil {
		m.Metadata[IdempotencyKey] = f.Run.String()
		m.Metadata[RunKey] = f.Run.String()
		m.Metadata[AttemptKey] = strconv.Itoa(f.Attempt)
		m.Metadata[ManifestKey] = f.Manifest
		m.Metadata[DueKey] = f.Due.Format(time.RFC3339Nano)
	}
	return m
}
