package bus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// The row of a message that waits for its retry has the beginning of the error, as a text that Postgres accepts. The
// message's first retry is in the log at Info, with the error.
func TestRetryIsExplainedInTheQueue(t *testing.T) {
	failure := errors.New("the card service said 503 \x00\xff" + strings.Repeat("é", 400))
	for name, part := range map[string]bus.Part{
		"batch":  bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { return failure }),
		"leased": bus.Handle(func(*bus.Context, add) error { return failure }),
		"ordered": bus.Handle(func(*bus.Context, add) error { return failure },
			bus.KeyedBy(func(m add) string { return m.Key })),
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer // read after the endpoint has ended
			w := newWorld(t, bus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			o := bus.EndpointOptions{Policy: recoverability.Always(recoverability.RetryIn(time.Hour))}
			if name == "ordered" {
				o.Ordered = bus.Strict
			}
			stop := w.start("fails", o, part)
			sent := w.send(add{Key: "k", N: 1})
			var found []operate.FoundMessage
			w.until("the retry waits", func() bool {
				var err error
				found, err = w.operator().Messages().Show(t.Context(), sent.ID, 0)
				return err == nil && len(found) == 1 && found[0].Info.Attempt == 2 && !found[0].Ready
			})
			stop()
			text := found[0].LastError
			if !strings.HasPrefix(text, "the card service said 503 \uFFFD") || len(text) > 500 || len(text) < 490 ||
				!utf8.ValidString(text) || found[0].Endpoint != "fails" || found[0].FirstFailed.IsZero() {
				t.Errorf("the queue has %+v with an error of %d bytes", found[0], len(text))
			}
			if peeked, err := w.operator().Messages().Peek(t.Context(), "fails", operate.PeekOptions{}); err != nil ||
				len(peeked) != 1 || peeked[0].LastError != text {
				t.Errorf("peek has %+v, %v", peeked, err)
			}
			if got := log.String(); !strings.Contains(got, `level=INFO msg="edda: message retried"`) ||
				!strings.Contains(got, "the card service said 503") {
				t.Errorf("the log has no first retry with its error:\n%s", got)
			}
		})
	}
}
