package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
)

// A report counts with the token that the submission of its attempt carried. Without it anybody who has the id of a run
// could end it, also while a handler here has its message in hand.
func TestReportNeedsTheTokenOfItsAttempt(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	first := w.next()
	w.untilDone()
	for name, r := range map[string]remote.Run{
		"no token":       {ID: id, Attempt: 1},
		"a wrong token":  {ID: id, Attempt: 1, Token: strings.Repeat("A", len(first.Token))},
		"half of it":     {ID: id, Attempt: 1, Token: first.Token[:len(first.Token)/2]},
		"of another run": {ID: w.trigger(), Attempt: 1, Token: first.Token},
	} {
		if name == "of another run" {
			w.next()
			w.untilDone()
		}
		for what, err := range map[string]error{"beat": w.client.Beat(t.Context(), r),
			"end": w.client.End(t.Context(), r, nil)} {
			if err == nil || !strings.Contains(err.Error(), "422") {
				t.Errorf("%s with %s: %v", what, name, err)
			}
		}
		if got := w.state(r.ID); got != scheduler.RunActive {
			t.Errorf("with %s the run is %s", name, got)
		}
	}
	if err := w.client.End(t.Context(), first.Run, errors.New("again")); err != nil {
		t.Error(err)
	}
	second := w.next()
	for second.ID != id {
		second = w.next()
	}
	w.untilDone()
	second.Token = first.Token
	if err := w.client.End(t.Context(), second.Run, nil); err == nil || w.state(id) != scheduler.RunActive {
		t.Errorf("with the token of the attempt before it the run is %s, %v", w.state(id), err)
	}
}

// The other side may be done before its answer is committed here, or before it has answered at all.
func TestEndBeforeTheAnswer(t *testing.T) {
	w := open(t, time.Hour)
	w.answer(func(answer http.ResponseWriter, s submission) {
		if err := w.client.End(w.Context(), s.Run, nil); err != nil {
			w.Error(err)
		}
		answer.WriteHeader(http.StatusAccepted)
	})
	id := w.trigger()
	w.next()
	w.untilState(id, scheduler.RunSucceeded)
	w.untilDone()
	if got := w.state(id); got != scheduler.RunSucceeded {
		t.Errorf("the run is %s", got)
	}
}

// The answer to the submission decides.
func TestAnswerDecides(t *testing.T) {
	w := open(t, time.Hour)
	for code, want := range map[int]scheduler.RunState{
		http.StatusOK: scheduler.RunSucceeded, http.StatusNoContent: scheduler.RunSucceeded,
		http.StatusUnprocessableEntity: scheduler.RunDead,
		http.StatusSeeOther:            scheduler.RunDead, // to a page that would answer 200
	} {
		w.answer(func(w http.ResponseWriter, _ submission) {
			w.Header().Set("Location", "/login")
			w.WriteHeader(code)
		})
		id := w.trigger()
		w.next()
		w.untilState(id, want)
	}
	var tries atomic.Int64
	w.answer(func(w http.ResponseWriter, _ submission) {
		switch tries.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
			w.WriteHeader(http.StatusConflict)
		case 4: // no answer
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}
	})
	id := w.trigger()
	for range 5 {
		if s := w.next(); s.ID != id || s.Attempt != 1 {
			t.Errorf("%+v", s)
		}
	}
	w.untilState(id, scheduler.RunSucceeded)
}

// Work ends when its run is over.
func TestWorkForARunThatWasCancelledEnds(t *testing.T) {
	w := open(t, time.Hour)
	id := w.trigger()
	s := w.next()
	w.untilBeating(id)
	err := w.client.Work(pgdev.Deadline(t), s.Run, 20*time.Millisecond, func(ctx context.Context) error {
		if err := w.store.Cancel(t.Context(), id, "not needed"); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, remote.ErrOver) {
		t.Errorf("%v, want ErrOver", err)
	}
	if got := w.state(id); got != scheduler.RunCancelled {
		t.Errorf("the run is %s", got)
	}
}

func TestReportsThatAreNone(t *testing.T) {
	w := open(t, time.Hour)
	w.trigger()
	s := w.next()
	post := func(path, body string) int {
		address := strings.TrimSuffix(w.client.URL, "/") + path
		answer, err := http.Post(address, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	run := "/runs/" + s.ID.String()
	for name, c := range map[string]struct {
		path, body string
		want       int
	}{
		"no JSON":       {run + "/1/end", "done", http.StatusBadRequest},
		"another field": {run + "/1/end", `{"outcome":"succeeded","at":1}`, http.StatusBadRequest},
		"another word":  {run + "/1/end", `{"outcome":"won"}`, http.StatusBadRequest},
		"two values":    {run + "/1/end", `{"outcome":"failed"}{}`, http.StatusBadRequest},
		"a contradiction": {run + "/1/end", `{"outcome":"succeeded","error":"no"}`,
			http.StatusBadRequest},
		"too long":     {run + "/1/end", `{"outcome":"failed","error":"` + strings.Repeat("x", 65<<10) + `"}`, 413},
		"no id":        {"/runs/seven/1/beat", "", http.StatusBadRequest},
		"attempt 0":    {run + "/0/beat", "", http.StatusBadRequest},
		"a huge one":   {run + "/99999999999/beat", "", http.StatusBadRequest},
		"another one":  {run + "/2/end", `{"outcome":"succeeded"}`, http.StatusConflict},
		"no such run":  {"/runs/" + saga.ID{7}.String() + "/1/end", `{"outcome":"succeeded"}`, http.StatusGone},
		"another path": {run + "/1/stop", "", http.StatusNotFound},
	} {
		if got := post(c.path, c.body); got != c.want {
			t.Errorf("%s: answer %d, want %d", name, got, c.want)
		}
	}
	if err := w.client.End(t.Context(), s.Run, errors.New(strings.Repeat("\x00<", 50_000))); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	wrong := remote.Client{URL: w.client.URL + "elsewhere", Logger: slog.New(ending{cancel})}
	if err := wrong.End(ctx, s.Run, nil); !errors.Is(err, errTold) || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v, want the end of the context, and an error about the address", err)
	}
}

var errTold = errors.New("told")

// ending is a log whose first line ends a context.
type ending struct{ end context.CancelCauseFunc }

func (e ending) Enabled(context.Context, slog.Level) bool  { return true }
func (e ending) Handle(context.Context, slog.Record) error { e.end(errTold); return nil }
func (e ending) WithAttrs([]slog.Attr) slog.Handler        { return e }
func (e ending) WithGroup(string) slog.Handler             { return e }

func TestSubmitWantsAnAddress(t *testing.T) {
	t.Parallel()
	b, err := bus.New(pgtest.Pool(t), bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "worker", "ftp://worker/x", "http://", "http://[::1"} {
		_, err := bus.NewEndpoint(b, "reports", bus.EndpointOptions{},
			remote.Submit("report.make", address, remote.SubmitOptions{}))
		if err == nil || !strings.Contains(err.Error(), "submit report.make") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := remote.RunOf(&http.Request{Header: http.Header{}}); err == nil ||
		!strings.Contains(err.Error(), "Edda-Run") {
		t.Errorf("%v", err)
	}
}
