package remote_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// The metadata of a submission, as docs/guide/remote.md has them.
const (
	runKey      = "edda_run"
	attemptKey  = "edda_run_attempt"
	manifestKey = "edda_manifest"
	dueKey      = "edda_due"
)

// A broker that is away costs attempts of the message, by the policy of the endpoint, and none of the run. An error
// that no waiting cures ends the run at once.
func TestBrokerThatIsAwayCostsNoRun(t *testing.T) {
	w := openMessages(t, time.Hour)
	w.fail(3, errAway)
	id := w.trigger()
	if _, r := w.nextRun(); r.ID != id || r.Attempt != 1 {
		t.Errorf("%+v", r)
	}
	if info := w.runInfo(id); info.State != scheduler.RunActive {
		t.Errorf("%+v", info)
	}
	w.mu.Lock()
	if w.left != 0 {
		t.Errorf("Publish was not called %d times", w.left)
	}
	w.mu.Unlock()

	w.fail(1<<30, errTooLarge)
	id = w.trigger()
	w.untilState(id, scheduler.RunDead)
	if info := w.runInfo(id); !strings.Contains(info.Error, errTooLarge.Error()) {
		t.Errorf("%+v", info)
	}
}

// A message that no manifest emitted is done when the broker has it. Its author's headers cross, except under the names
// of a run.
func TestMessageOfNoManifestIsDoneWhenTheBrokerHasIt(t *testing.T) {
	w := openMessages(t, time.Hour)
	w.fail(1, errAway)
	sent, err := w.bus.Send(t.Context(), report{"june"}, saga.WithHeader("colour", "green"),
		saga.WithHeader(runKey, saga.ID{7}.String()), saga.WithHeader(attemptKey, "1"),
		saga.WithHeader(dueKey, "2026-01-01T00:00:00Z"), saga.WithHeader(manifestKey, "reports"))
	if err != nil {
		t.Fatal(err)
	}
	m, id := w.next(), sent.ID.String()
	want := message.Metadata{"colour": "green", watermill.KindKey: "report.make", remote.IdempotencyKey: id}
	if m.UUID != id || !maps.Equal(m.Metadata, want) {
		t.Errorf("message %s with %v, want %s with %v", m.UUID, m.Metadata, id, want)
	}
	if _, err := remote.RunOfMessage(m); err == nil || !strings.Contains(err.Error(), runKey) {
		t.Errorf("%v", err)
	}
	w.untilDone()
}

// Another program with Edda takes submissions in by an intake, whose inbox drops no attempt, and reports; reports come
// back by an intake, too.
func TestRunsCrossByIntakes(t *testing.T) {
	w := openMessages(t, time.Hour)
	const back = "reports-back"
	came := make(chan remote.Run, 10)
	w.endpoint("there", submissions, watermill.Consume("report.make", func(m *message.Message) error {
		r, err := remote.RunOfMessage(m)
		if m.Metadata[remote.IdempotencyKey] != r.ID.String() {
			t.Errorf("%v", m.Metadata)
		}
		came <- r
		return err
	}))
	w.endpoint("back", back, watermill.Consume(back, remote.NewMessageHandler(w.reports, remote.HandlerOptions{})))
	client := &remote.MessageClient{Publisher: w.client.Publisher, Topic: back, Logger: w.client.Logger}
	id := w.trigger()
	for n, failure := range []error{errors.New("the printer is on fire"), nil} {
		r := next(t, came)
		if r.ID != id || r.Attempt != n+1 || r.Manifest != "reports" {
			t.Errorf("%+v, want attempt %d of run %s", r, n+1, id)
		}
		if err := client.End(t.Context(), r, failure); err != nil {
			t.Error(err)
		}
	}
	w.untilState(id, scheduler.RunSucceeded)
}

// End publishes until the broker takes the report, or says that it never will.
func TestEndInsists(t *testing.T) {
	w := openMessages(t, time.Hour)
	id := w.trigger()
	_, s := w.nextRun()
	r := s.Run
	w.fail(2, errAway)
	publisher := faulty{w, w.client.Publisher}
	client := &remote.MessageClient{Publisher: publisher, Topic: reports, Logger: w.client.Logger}
	if err := client.Beat(t.Context(), r); !errors.Is(err, errAway) {
		t.Errorf("a beat: %v", err)
	}
	if err := client.End(t.Context(), r, nil); err != nil {
		t.Error(err)
	}
	w.untilState(id, scheduler.RunSucceeded)
	w.fail(1<<30, saga.Permanent(errTooLarge))
	if err := client.End(t.Context(), r, nil); !errors.Is(err, errTooLarge) {
		t.Errorf("an end that is never taken: %v", err)
	}
}

func TestWhatIsNoSubmission(t *testing.T) {
	t.Parallel()
	b, err := bus.New(pgtest.Pool(t), bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bus.NewEndpoint(b, "reports", bus.EndpointOptions{},
		remote.Publish("report.make", nil, remote.PublishOptions{}))
	if err == nil || !strings.Contains(err.Error(), "the publisher is nil") {
		t.Error(err)
	}
	whole := message.Metadata{runKey: saga.ID{7}.String(), attemptKey: "1", manifestKey: "reports",
		dueKey: "2026-01-01T00:00:00Z"}
	for name, wrong := range map[string]string{runKey: saga.ID{}.String(), attemptKey: "2147483648", manifestKey: "",
		dueKey: "0"} {
		m := message.NewMessage("7", nil)
		maps.Copy(m.Metadata, whole)
		m.Metadata[name] = wrong
		if _, err := remote.RunOfMessage(m); err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
