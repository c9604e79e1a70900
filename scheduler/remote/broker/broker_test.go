package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/edda-go/edda/scheduler/remote/broker"
)

// A run that the broker has taken is active until the other side says how it ended, however often it says so. The
// metadata name the run.
func TestRunOverABrokerEndsWhenTheOtherSideSaysSo(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	m, r := w.nextRun()
	info := w.runInfo(id)
	want := remote.Run{ID: id, Attempt: 1, Manifest: "reports", Due: r.Due, Token: r.Token}
	if r != want || r.Token == "" || !r.Due.Equal(info.Due) {
		t.Errorf("%+v, want %+v at %v", r, want, info.Due)
	}
	if m.Metadata[broker.IdempotencyKey] != id.String() || m.Metadata[watermill.KindKey] != "report.make" ||
		string(m.Payload) != `{"Month":"may"}` {
		t.Errorf("%v with %s", m.Metadata, m.Payload)
	}
	for name := range m.Metadata {
		if strings.HasPrefix(name, "edda-run") || strings.HasPrefix(name, "edda-fire") {
			t.Errorf("metadata %s crosses, which a border drops", name)
		}
	}
	if info.State != scheduler.RunActive {
		t.Errorf("the run is %s before its end", info.State)
	}
	if err := w.client.Beat(t.Context(), r); err != nil {
		t.Error(err)
	}
	for range 2 { // the other side may not know that it has said so
		if err := w.client.End(t.Context(), r, nil); err != nil {
			t.Error(err)
		}
	}
	w.untilState(id, scheduler.RunSucceeded)
	if info := w.runInfo(id); info.Attempt != 1 {
		t.Errorf("%+v", info)
	}
}

// A failure is tried again by the rules of the manifest, under the same key; one that is permanent is not. The broker
// drops what has the UUID of a message that it knows, and still has the second attempt.
func TestSecondAttemptIsNotSwallowedByTheBroker(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	first, r := w.nextRun()
	if err := w.client.End(t.Context(), r, errors.New("the printer is on fire")); err != nil {
		t.Error(err)
	}
	second, again := w.nextRun()
	if again.ID != id || again.Attempt != 2 || second.UUID == first.UUID ||
		second.Metadata[broker.IdempotencyKey] != first.Metadata[broker.IdempotencyKey] {
		t.Errorf("%+v, %v after %v", again, second.Metadata, first.Metadata)
	}
	if err := w.client.End(t.Context(), again, saga.Permanent(errors.New("no such month"))); err != nil {
		t.Error(err)
	}
	w.untilState(id, scheduler.RunDead)
	if info := w.runInfo(id); !strings.Contains(info.Error, "no such month") {
		t.Errorf("%+v", info)
	}
}

// A broker that is away costs attempts of the message, by the policy of the endpoint, and none of the run. An error
// that no waiting cures ends the run at once.
func TestBrokerThatIsAwayCostsNoRun(t *testing.T) {
	w := open(t, time.Hour)
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
	w := open(t, time.Hour)
	w.fail(1, errAway)
	sent, err := w.bus.Send(t.Context(), report{"june"}, saga.WithHeader("colour", "green"),
		saga.WithHeader(runKey, saga.ID{7}.String()), saga.WithHeader(attemptKey, "1"),
		saga.WithHeader(dueKey, "2026-01-01T00:00:00Z"), saga.WithHeader(manifestKey, "reports"))
	if err != nil {
		t.Fatal(err)
	}
	m, id := w.next(), sent.ID.String()
	want := message.Metadata{"colour": "green", watermill.KindKey: "report.make", broker.IdempotencyKey: id}
	if m.UUID != id || !maps.Equal(m.Metadata, want) {
		t.Errorf("message %s with %v, want %s with %v", m.UUID, m.Metadata, id, want)
	}
	if _, err := broker.RunOf(m); err == nil || !strings.Contains(err.Error(), runKey) {
		t.Errorf("%v", err)
	}
	w.untilDone()
}

// A run of which nothing is heard is submitted again, and a report of the side that had it before changes nothing.
func TestSilentRunOverABrokerIsSubmittedAgain(t *testing.T) {
	w := open(t, time.Second)
	id := w.trigger()
	_, first := w.nextRun()
	for {
		m := w.next()
		second, err := broker.RunOf(m)
		if err != nil || second.ID != id || second.Attempt < 2 {
			t.Fatalf("%+v after %+v: %v", second, first, err)
		}
		if err := w.client.End(t.Context(), first, errors.New("too late")); err != nil {
			t.Error(err)
		}
		if err := w.client.End(t.Context(), second, nil); err != nil {
			t.Error(err)
		}
		if second.Attempt > 2 { // this test may be slower than a second, too
			break
		}
		w.until("the run has ended, or is sent again", func() bool {
			info := w.runInfo(id)
			return info.State == scheduler.RunSucceeded || info.Attempt > 2
		})
		if w.runInfo(id).State == scheduler.RunSucceeded {
			break
		}
	}
	w.untilState(id, scheduler.RunSucceeded)
}

// Work gives signs of life for as long as it works, and tells how it ended.
func TestWorkOverABrokerKeepsTheRun(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	_, r := w.nextRun()
	if err := w.client.Work(t.Context(), r, 20*time.Millisecond, func(ctx context.Context) error {
		for range 3 {
			pgtest.Exec(t, w.pool, w.schema.Render("UPDATE :schema.run SET beat = now() - interval '40 minutes'"))
			w.until("there is another sign of life", func() bool {
				var young bool
				err := w.pool.QueryRow(ctx, w.schema.Render(
					"SELECT beat > now() - interval '20 minutes' FROM :schema.run")).Scan(&young)
				return err == nil && young
			})
		}
		return ctx.Err()
	}); err != nil {
		t.Error(err)
	}
	w.untilState(id, scheduler.RunSucceeded)
}

// Another program with Edda takes submissions in by an intake, whose inbox drops no attempt, and reports; reports come
// back by an intake, too.
func TestRunsCrossByIntakes(t *testing.T) {
	w := open(t, time.Hour)
	const back = "reports-back"
	taken, err := scheduler.NewReports(w.pool, w.schema.Name())
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan remote.Run, 10)
	w.endpoint("there", submissions, watermill.Consume("report.make", func(m *message.Message) error {
		r, err := broker.RunOf(m)
		if m.Metadata[broker.IdempotencyKey] != r.ID.String() {
			t.Errorf("%v", m.Metadata)
		}
		came <- r
		return err
	}))
	w.endpoint("back", back, watermill.Consume(back, broker.NewHandler(taken, broker.HandlerOptions{})))
	client := &broker.Client{Publisher: w.client.Publisher, Topic: back, Logger: w.client.Logger}
	id := w.trigger()
	for n, failure := range []error{errors.New("the printer is on fire"), nil} {
		var r remote.Run
		select {
		case r = <-came:
		case <-time.After(pgdev.Patience(20 * time.Second)):
			t.Fatalf("attempt %d did not come", n+1)
		}
		if r.ID != id || r.Attempt != n+1 || r.Manifest != "reports" {
			t.Errorf("%+v, want attempt %d of run %s", r, n+1, id)
		}
		if err := client.End(t.Context(), r, failure); err != nil {
			t.Error(err)
		}
	}
	w.untilState(id, scheduler.RunSucceeded)
}

// endpoint runs an endpoint that gets a topic by an intake.
func (w *world) endpoint(name, topic string, part bus.Part) {
	w.Helper()
	err := w.owner.InstallQueue(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	e, err := bus.NewEndpoint(w.bus, name, bus.EndpointOptions{DirectOnly: true, Poll: 20 * time.Millisecond}, part)
	if err == nil {
		err = e.Install(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	intake, err := watermill.NewIntake(w.bus, topic, w.broker, watermill.IntakeOptions{Endpoint: name,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.run(e.Run)
	w.run(intake.Run)
}

// End publishes until the broker takes the report, or says that it never will.
func TestEndInsists(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	_, r := w.nextRun()
	w.fail(2, errAway)
	publisher := faulty{w, w.client.Publisher}
	client := &broker.Client{Publisher: publisher, Topic: reports, Logger: w.client.Logger}
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
		broker.Submit("report.make", nil, broker.SubmitOptions{}))
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
		if _, err := broker.RunOf(m); err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
