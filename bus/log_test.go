package bus_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

type logged struct{ Fate string }

func (logged) Kind() string { return "logged" }

// Alerts depend on these lines: a changed text or key breaks them.
func TestLogOfAnEndpointsLife(t *testing.T) {
	var text bytes.Buffer // slog's handler serialises the writes, and it is read after the last one
	w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey:
				return slog.Attr{}
			case "delay":
				return slog.String("delay", "some")
			}
			return a
		},
	}))})
	stop := w.start("logs", bus.EndpointOptions{Concurrency: 1, BatchMax: 1},
		bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m logged) error {
			switch m.Fate {
			case "dead":
				return saga.Permanent(errors.New("no such shelf"))
			case "discarded":
				return saga.Discard("nobody wants it")
			}
			return nil
		}))
	dead := w.send(logged{Fate: "dead"})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	discarded := w.send(logged{Fate: "discarded"},
		saga.WithHeader("traceparent", "00-"+trace+"-b7ad6b7169203331-01"))
	w.send(logged{Fate: "fine"})
	w.untilEmpty("logs")
	stop()
	want := []string{
		`level=INFO msg="edda: endpoint started" endpoint=logs concurrency=1`,
		`level=WARN msg="edda: message dead-lettered" endpoint=logs message_id=` + dead.ID.String() +
			` kind=logged attempt=1 conversation=` + dead.ID.String() + ` reason=permanent error="no such shelf"`,
		`level=INFO msg="edda: message discarded" endpoint=logs message_id=` + discarded.ID.String() +
			` kind=logged attempt=1 conversation=` + discarded.ID.String() + ` trace_id=` + trace +
			` reason="nobody wants it"`,
		`level=INFO msg="edda: endpoint stopped" endpoint=logs error=<nil>`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(text.String()), "\n")); diff != "" {
		t.Errorf("the log is other than wanted (-) here (+):\n%s", diff)
	}
}

// A retry within a batch was not in the log, and the important first failure of a message was among all others.
func TestLogOfRetries(t *testing.T) {
	var text bytes.Buffer // read after the last write, as above
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})
	w := newWorld(t, bus.Options{Logger: slog.New(handler)})
	policy, err := recoverability.Retries{Immediate: 2, Delayed: 1, Step: time.Millisecond}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	fails := func(c *bus.Context, _ pgx.Tx, _ logged) error { return fmt.Errorf("no %d", c.Info().Attempt) }
	stop := w.start("logs", bus.EndpointOptions{Policy: policy}, bus.HandleTx(fails))
	w.send(logged{})
	w.untilEmpty("logs")
	stop()
	var got []string
	parts := regexp.MustCompile(`level=\w+ msg="edda: message [^"]+"|attempt=\d|error="no \d"`)
	got = append(got, parts.FindAllString(text.String(), -1)...)
	var want []string
	for attempt := 1; attempt <= 6; attempt++ {
		line := `level=DEBUG msg="edda: message retried"`
		switch attempt {
		case 1:
			line = `level=INFO msg="edda: message retried"`
		case 6:
			line = `level=WARN msg="edda: message dead-lettered"`
		}
		want = append(want, line, fmt.Sprint("attempt=", attempt), fmt.Sprintf("error=\"no %d\"", attempt))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log is other than wanted (-) here (+):\n%s", diff)
	}
}

// A missing handler looks like a deploy under way. The log names the kind at its first message.
func TestLogOfAKindThatNobodyKnows(t *testing.T) {
	var text bytes.Buffer // read after the last write, as above
	w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	stop := w.start("logs", bus.EndpointOptions{UnknownKindTimeout: time.Hour},
		bus.HandleTx(func(*bus.Context, pgx.Tx, logged) error { return nil }))
	for range 3 {
		w.send(add{N: 1}, saga.To("logs"))
	}
	w.send(paid{}, saga.To("logs"))
	w.until("all were put back", func() bool {
		return w.count(`SELECT count(*) FROM `+w.queue("logs")+` WHERE first_failed IS NOT NULL AND due > now()`) == 4
	})
	until := w.text(`SELECT to_char((min(first_failed) + interval '1 hour') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI')
		FROM ` + w.queue("logs") + ` WHERE kind = 'tally.add'`)
	stop()
	for kind, line := range map[string]string{
		"tally.add": `level=WARN msg="edda: messages wait for a program that handles their kind" endpoint=logs ` +
			`message_id=\S+ kind=tally.add until=` + until + `\S+ remedy="run a program whose endpoint handles this ` +
			`kind; [^"]+ becomes a dead letter" error="tally.add: [^"]+ consumes \[logged\]"`,
		"card.paid": `messages wait for a program that handles their kind" endpoint=logs message_id=\S+ kind=card.paid`,
	} {
		if n := len(regexp.MustCompile(line).FindAllString(text.String(), -1)); n != 1 {
			t.Errorf("%d lines of %s, want 1:\n%s", n, kind, text.String())
		}
	}
}
