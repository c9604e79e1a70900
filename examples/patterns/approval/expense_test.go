package approval

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
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

var (
	submit     = Submit{Expense: "7", Cents: 1990, Manager: "Ada", Boss: "Grace"}
	askAda     = Ask{Expense: "7", Person: "Ada"}
	askGrace   = Ask{Expense: "7", Person: "Grace"}
	adaAgrees  = Decide{Expense: "7", Approve: true, By: "Ada"}
	graceNever = Decide{Expense: "7", By: "Grace"}
)

func begin(t *testing.T) *sagatest.Run {
	t.Helper()
	r := sagatest.New(t, Expenses)
	must(t, r.Deliver(submit))
	wantSent(t, r, askAda)
	return r
}

func TestDecisionEndsTheWait(t *testing.T) {
	t.Parallel()
	r := begin(t)
	must(t, r.Deliver(submit)) // again
	wantSent(t, r)
	must(t, r.Deliver(adaAgrees))
	wantSent(t, r, Decided{Expense: "7", Approved: true, By: "Ada"})
	if r.Live("7") {
		t.Error("the expense is not decided")
	}
	must(t, r.Advance(remembered-time.Second))
	wantSent(t, r)
}

// The first decision counts, and a later one is recorded.
func TestSecondDecisionIsDiscarded(t *testing.T) {
	t.Parallel()
	r := begin(t)
	must(t, r.Deliver(adaAgrees))
	must(t, r.Deliver(Decide{Expense: "7", By: "Ada"}))
	wantSent(t, r, Decided{Expense: "7", Approved: true, By: "Ada"})
	if late := r.Discarded(); len(late) != 1 {
		t.Errorf("discarded %q, want the second decision", late)
	}
	must(t, r.Deliver(submit)) // a late copy of the first message sends no request
	wantSent(t, r)
}

func TestPeopleAreRemindedAndTheBossIsAsked(t *testing.T) {
	t.Parallel()
	r := begin(t)
	must(t, r.Deliver(graceNever))
	if early := r.Discarded(); len(early) != 1 || !strings.Contains(early[0], "no request to decide") {
		t.Errorf("discarded %q, want the decision of the boss", early)
	}
	for range patience - 1 {
		must(t, r.Advance(remindAfter-time.Second))
		wantSent(t, r)
		must(t, r.Advance(time.Second))
		wantSent(t, r, askAda)
	}
	must(t, r.Advance(remindAfter))
	wantSent(t, r, askAda, askGrace)
	must(t, r.Advance(remindAfter))
	wantSent(t, r, askAda, askGrace)
	must(t, r.Deliver(graceNever))
	wantSent(t, r, Decided{Expense: "7", By: "Grace"})
}

// desk runs the expense in an endpoint, and reports the outcome of each decision.
func desk(t *testing.T) (b *memory.Bus, decide func(user, expense, approve string) int, decided <-chan Decided) {
	t.Helper()
	b, err := memory.New(memory.Options{Logger: slog.New(slog.DiscardHandler),
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	must(t, err)
	ends := make(chan Decided, 10)
	for name, part := range map[string][]bus.Part{
		"expenses": {bus.Saga(Expenses)},
		"others": {bus.Handle(func(_ *bus.Context, m Decided) error { ends <- m; return nil }),
			bus.Handle(func(*bus.Context, Ask) error { return nil })},
	} {
		_, err := memory.NewEndpoint(b, name, bus.EndpointOptions{}, part...)
		must(t, err)
	}
	stop, err := b.Start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, stop()) })
	d := Desk{Bus: b, User: func(r *http.Request) string { return r.Header.Get("User") }}
	site := http.NewServeMux()
	site.HandleFunc("POST /expenses/{id}/decision", d.Decide)
	return b, func(user, expense, approve string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/expenses/"+expense+"/decision",
			strings.NewReader(url.Values{"approve": {approve}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("User", user)
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		must(t, b.Advance(t.Context(), 0))
		return w.Code
	}, ends
}

func TestPeopleDecideOnAPage(t *testing.T) {
	t.Parallel()
	b, decide, decided := desk(t)
	_, err := b.Send(t.Context(), submit)
	must(t, err)
	must(t, b.Advance(t.Context(), 0))
	for _, click := range []struct {
		user, expense, approve string
		want                   int
	}{
		{"Grace", "7", "yes", http.StatusForbidden},
		{"Ada", "8", "yes", http.StatusConflict},
		{"Ada", "7", "yes", http.StatusAccepted},
		{"Ada", "7", "no", http.StatusConflict},
	} {
		if got := decide(click.user, click.expense, click.approve); got != click.want {
			t.Errorf("%+v: the answer is %d", click, got)
		}
	}
	if got, want := <-decided, (Decided{Expense: "7", Approved: true, By: "Ada"}); got != want || len(decided) > 0 {
		t.Errorf("%v and %d more, want %v", got, len(decided), want)
	}
}

// away is a bus whose database is away.
type away struct{ reads bool }

var errAway = errors.New("the database is away")

func (a away) Instance(_ context.Context, _ *saga.Definition, _ string, into any) (saga.Instance, bool, error) {
	if !a.reads {
		return saga.Instance{}, false, errAway
	}
	*into.(*Expense) = Expense{Asked: []string{""}}
	return saga.Instance{}, true, nil
}

func (away) Send(context.Context, saga.Message, ...saga.SendOption) (saga.Sent, error) {
	return saga.Sent{}, errAway
}

func TestDecisionWithoutADatabaseIsNotLost(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	for _, b := range []away{{reads: false}, {reads: true}} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		Desk{Bus: b, User: func(*http.Request) string { return "" }}.Decide(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%+v: the answer is %d, want that it failed", b, w.Code)
		}
	}
}
