package remote_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// What is no report is dropped, and logged; a report that could not be written comes again.
func TestMessagesThatAreNoReports(t *testing.T) {
	w := openMessages(t, time.Hour)
	id := w.trigger()
	_, r := w.nextRun()
	var log bytes.Buffer
	handler := remote.NewMessageHandler(w.reports, remote.HandlerOptions{Logger: slog.New(slog.NewTextHandler(&log,
		&slog.HandlerOptions{Level: slog.LevelDebug}))})
	report := func(text string) string { return strings.ReplaceAll(text, "RUN", id.String()) }
	const (
		dropped = `level=WARN msg="edda: a message is not a report on a run`
		gone    = `level=WARN msg="edda: a report names a run that does not exist`
		refused = `level=WARN msg="edda: a report without the token of its attempt was refused`
		over    = `level=DEBUG msg="edda: a report names an attempt that has ended`
	)
	for name, c := range map[string]struct{ payload, want string }{
		"no JSON":         {"done", dropped},
		"another word":    {report(`{"run":"RUN","attempt":1,"outcome":"won"}`), dropped},
		"two values":      {report(`{"run":"RUN","attempt":1,"outcome":"failed"}{}`), dropped},
		"a contradiction": {report(`{"run":"RUN","attempt":1,"outcome":"succeeded","error":"no"}`), dropped},
		"a failing beat":  {report(`{"run":"RUN","attempt":1,"outcome":"beat","error":"no"}`), dropped},
		"no run":          {`{"attempt":1,"outcome":"succeeded"}`, dropped},
		"no attempt":      {report(`{"run":"RUN","outcome":"succeeded"}`), dropped},
		"an empty one":    {"", dropped},
		"null":            {"null", dropped},
		"no object":       {report(`["RUN",1,"succeeded"]`), dropped},
		"a zero run":      {`{"run":"` + saga.ID{}.String() + `","attempt":1,"outcome":"succeeded"}`, dropped},
		"attempt 0":       {report(`{"run":"RUN","attempt":0,"outcome":"succeeded"}`), dropped},
		"attempt -1":      {report(`{"run":"RUN","attempt":-1,"outcome":"succeeded"}`), dropped},
		"attempt null":    {report(`{"run":"RUN","attempt":null,"outcome":"succeeded"}`), dropped},
		"attempt 1.5":     {report(`{"run":"RUN","attempt":1.5,"outcome":"succeeded"}`), dropped},
		"attempt 2^31":    {report(`{"run":"RUN","attempt":2147483648,"outcome":"succeeded"}`), dropped},
		"a zero byte":     {report(`{"run":"RUN\u0000","attempt":1,"outcome":"succeeded"}`), dropped},
		"zero bytes":      {"\x00\x00", dropped},
		"a huge attempt":  {report(`{"run":"RUN","attempt":99999999999,"outcome":"succeeded"}`), dropped},
		"too long": {report(`{"run":"RUN","attempt":1,"outcome":"failed","error":"` + strings.Repeat("x", 65<<10) +
			`"}`), dropped},
		"another attempt": {report(`{"run":"RUN","attempt":2,"outcome":"succeeded"}`), over},
		"no such run":     {`{"run":"` + saga.ID{7}.String() + `","attempt":1,"outcome":"succeeded"}`, gone},
		"a beat of none":  {`{"run":"` + saga.ID{7}.String() + `","attempt":1,"outcome":"beat"}`, refused},
		"no token":        {report(`{"run":"RUN","attempt":1,"outcome":"succeeded"}`), refused},
		"a beat without":  {report(`{"run":"RUN","attempt":1,"outcome":"beat"}`), refused},
		"a wrong token":   {report(`{"run":"RUN","attempt":1,"outcome":"dead","token":"x"}`), refused},
	} {
		log.Reset()
		if err := handler(message.NewMessage("7", []byte(c.payload))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: the log has %q, want %q", name, log.String(), c.want)
		}
	}
	if info := w.runInfo(id); info.State != scheduler.RunActive || info.Attempt != r.Attempt {
		t.Errorf("%+v", info)
	}
	away, stop := context.WithCancel(t.Context())
	stop()
	m := message.NewMessage("7", []byte(report(`{"run":"RUN","attempt":1,"outcome":"succeeded"}`)))
	m.SetContext(away)
	if err := handler(m); !errors.Is(err, context.Canceled) {
		t.Errorf("a report that could not be written: %v", err)
	}
}

// A report with more than is known counts, and so does one whose error is no good text.
func TestReportsWithOddWordsCount(t *testing.T) {
	w := openMessages(t, time.Hour)
	handler := remote.NewMessageHandler(w.reports, remote.HandlerOptions{Logger: w.client.Logger})
	for _, c := range []struct{ name, rest, want string }{
		{"another name", `"outcome":"dead","error":"no paper","at":"noon"`, "no paper"},
		{"another case", `"Outcome":"dead","ERROR":"no ink"`, "no ink"},
		{"the last counts", `"outcome":"succeeded","outcome":"dead","error":"one","error":"two"`, "two"},
		{"a zero byte", `"outcome":"dead","error":"a\u0000b"`, "a\uFFFDb"},
		{"no UTF-8", `"outcome":"dead","error":"a` + "\xff" + `b"`, "a\uFFFDb"},
		{"half a pair", `"outcome":"dead","error":"a\ud800b"`, "a\uFFFDb"},
	} {
		id := w.trigger()
		_, r := w.nextRun()
		payload := `{"run":"` + id.String() + `","attempt":1,"token":"` + r.Token + `",` + c.rest + `}`
		if err := handler(message.NewMessage("7", []byte(payload))); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		w.untilState(id, scheduler.RunDead)
		if info := w.runInfo(id); !strings.Contains(info.Error, c.want) {
			t.Errorf("%s: the error is %q, want %q", c.name, info.Error, c.want)
		}
		if err := w.store.Cancel(t.Context(), id, "the next one"); err != nil {
			t.Fatal(err)
		}
	}
}

// A publisher that is closed takes nothing any more, and neither does one whose error its user calls permanent.
func TestEndGivesUpWhatCannotPass(t *testing.T) {
	t.Parallel()
	closed := gochannel.NewGoChannel(gochannel.Config{}, stock.NopLogger{})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	w := &messages{}
	w.fail(1<<30, errTooLarge)
	r := remote.Run{ID: saga.ID{7}, Attempt: 1}
	quiet := slog.New(slog.DiscardHandler)
	within, cancel := context.WithTimeout(t.Context(), pgdev.Patience(10*time.Second))
	defer cancel()
	for name, client := range map[string]*remote.MessageClient{
		"of gochannel": {Publisher: closed, Topic: reports, Logger: quiet},
		"of Edda":      {Publisher: saying{watermill.ErrClosed}, Topic: reports, Logger: quiet},
		"permanent": {Publisher: faulty{w, nil}, Topic: reports, Logger: quiet,
			Permanent: func(err error) bool { return errors.Is(err, errTooLarge) }},
		"without one": {Topic: reports, Logger: quiet},
	} {
		if err := client.End(within, r, nil); err == nil || within.Err() != nil {
			t.Errorf("%s: %v, %v", name, err, within.Err())
		}
	}
}

// saying is a publisher that fails.
type saying struct{ err error }

func (s saying) Publish(string, ...*message.Message) error { return s.err }
func (saying) Close() error                                { return nil }

// A client without a publisher is an error before any work, and a handler without reports one where it is made.
func TestWhatIsMissingIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	r := remote.Run{ID: saga.ID{7}, Attempt: 1}
	err := (&remote.MessageClient{Topic: reports}).Work(t.Context(), r, time.Minute, func(context.Context) error {
		t.Error("work is called")
		return nil
	})
	const want = "has no Publisher"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if err := (&remote.MessageClient{}).Beat(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "the reports are nil") {
			t.Errorf("it said %q", said)
		}
	}()
	remote.NewMessageHandler(nil, remote.HandlerOptions{})
}

// With the Publisher of Edda, in a handler of an endpoint, signs of life are committed while the work lasts, and the
// end is, although the handler fails afterwards.
func TestReportsByEddaDoNotWaitForTheMessage(t *testing.T) {
	w := openMessages(t, time.Hour)
	const back = "reports-back"
	publisher, err := watermill.NewPublisher(w.bus, watermill.PublisherOptions{Queue: true,
		Kind: func(string, *message.Message) string { return back }})
	if err != nil {
		t.Fatal(err)
	}
	w.endpoint("back", back, watermill.Consume(back, remote.NewMessageHandler(w.reports, remote.HandlerOptions{})))
	client := &remote.MessageClient{Publisher: publisher, Topic: "back", Logger: w.client.Logger}
	begun, goOn := make(chan remote.Run, 100), make(chan struct{})
	w.endpoint("there", submissions, watermill.Consume("report.make", func(m *message.Message) error {
		r, err := remote.RunOfMessage(m)
		if err != nil {
			return err
		}
		err = client.Work(m.Context(), r, 20*time.Millisecond, func(ctx context.Context) error {
			begun <- r
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		return errors.Join(err, errors.New("it fails after the report"))
	}))
	id := w.trigger()
	if r := next(t, begun); r.ID != id {
		t.Errorf("%+v", r)
	}
	w.untilBeating(id)
	w.untilBeatsAgain(id)
	close(goOn)
	w.untilState(id, scheduler.RunSucceeded)
}
