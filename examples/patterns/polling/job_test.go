package polling

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/memory"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantSent(t *testing.T, r *sagatest.Run, want ...saga.Message) {
	t.Helper()
	if got := r.Sent(); !slices.Equal(got, want) {
		t.Fatalf("sent %v, want %v", got, want)
	}
}

func begin(t *testing.T) *sagatest.Run {
	t.Helper()
	r := sagatest.New(t, Jobs)
	must(t, r.Deliver(Export{Name: "a"}))
	wantSent(t, r, Look{Name: "a"})
	return r
}

func TestPausesGrow(t *testing.T) {
	t.Parallel()
	r := begin(t)
	for pause := firstPause; pause < 2*longestPause; pause *= 2 {
		must(t, r.Reply(Look{Name: "a"}, Progress{}))
		must(t, r.Advance(min(pause, longestPause)-time.Millisecond))
		wantSent(t, r)
		must(t, r.Advance(time.Millisecond))
		wantSent(t, r, Look{Name: "a"})
	}
	must(t, r.Reply(Look{Name: "a"}, Progress{Done: true, File: "f"}))
	wantSent(t, r, Exported{Name: "a", File: "f"})
	if r.Live("a") {
		t.Error("the export is not over")
	}
}

// A second start of one name waits with the first.
func TestExportIsStartedTwice(t *testing.T) {
	t.Parallel()
	r := begin(t)
	must(t, r.Deliver(Export{Name: "a"}))
	wantSent(t, r)
}

// If no answer ever comes the export fails, and later messages are discarded.
func TestExportThatIsNeverDone(t *testing.T) {
	t.Parallel()
	r := begin(t)
	must(t, r.Advance(giveUpAfter-time.Second))
	wantSent(t, r)
	must(t, r.Advance(time.Second))
	wantSent(t, r, ExportFailed{Name: "a"})
	must(t, r.Reply(Look{Name: "a"}, Progress{Done: true, File: "f"}))
	wantSent(t, r)
	if late := r.Discarded(); len(late) != 1 {
		t.Errorf("discarded %q, want the late answer", late)
	}
}

// system is broken first, then not done, then done.
func system(t *testing.T) System {
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { http.Error(w, `{"done":true,"file":"none"}`, http.StatusBadGateway) },
		func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `{"done":false}`) },
		func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `{"done":true,"file":"f"}`) },
	}
	var next sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.Lock()
		defer next.Unlock()
		if len(answers) == 0 || r.URL.EscapedPath() != "/exports/a%2F7" {
			t.Errorf("a call of %s too much", r.URL.EscapedPath())
			return
		}
		answers[0](w)
		answers = answers[1:]
	}))
	t.Cleanup(server.Close)
	return System{Client: server.Client(), URL: server.URL}
}

// The saga and the handler together: a failed request is retried, and the saga waits between requests.
func TestExportIsPolledUntilItIsDone(t *testing.T) {
	t.Parallel()
	b, err := memory.New(memory.Options{Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	ended := make(chan Exported, 1)
	for name, part := range map[string]bus.Part{"exports": bus.Saga(Jobs), "looks": bus.Handle(system(t).Look),
		"desk": bus.Handle(func(_ *bus.Context, m Exported) error { ended <- m; return nil })} {
		_, err := memory.NewEndpoint(b, name, bus.EndpointOptions{}, part)
		must(t, err)
	}
	stop, err := b.Start(t.Context())
	must(t, err)
	defer func() { must(t, stop()) }()
	_, err = b.Send(context.Background(), Export{Name: "a/7"})
	must(t, err)
	must(t, b.Advance(t.Context(), time.Hour))
	select {
	case got := <-ended:
		if want := (Exported{Name: "a/7", File: "f"}); got != want {
			t.Errorf("exported %v, want %v", got, want)
		}
	default:
		t.Errorf("after an hour it is not exported; dead letters: %v", b.DeadLetters())
	}
}
