package vitals_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/edda-go/edda/operate/vitals"
)

func anAlarm() vitals.Alarm {
	return vitals.Alarm{At: time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC), Schema: "edda", Vital: vitals.Vital{
		Name: vitals.Snapshot, Subject: "session 4711", Level: vitals.Bad,
		Value: vitals.Quantity{Number: 2460, Unit: "s"}, Threshold: vitals.Quantity{Number: 600, Unit: "s"},
		Sentence: "Session 4711 has held a snapshot.", Do: "SELECT pg_terminate_backend(4711).",
	}}
}

func TestWebhookPostsJSON(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	bodies := make(chan map[string]any, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 { // the receiver is not ready yet
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPost ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.Method, r.Header, err)
		}
		bodies <- body
	}))
	defer hook.Close()
	notify := vitals.Webhook(hook.URL, hook.Client())
	if err := notify(t.Context(), anAlarm()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"at": "2026-03-01T14:02:00Z", "schema": "edda", "state": "bad", "vital": "snapshot", "subject": "session 4711",
		"value": 2460.0, "unit": "s", "threshold": 600.0, "sentence": "Session 4711 has held a snapshot.",
		"do":   "SELECT pg_terminate_backend(4711).",
		"text": "Session 4711 has held a snapshot. SELECT pg_terminate_backend(4711).",
	} {
		body := <-bodies
		if bodies <- body; body[name] != want || len(body) != 11 {
			t.Errorf("%s is %v, want %v: %v", name, body[name], want, body)
		}
	}
	<-bodies
	over := anAlarm()
	over.Over = true
	if err := notify(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if body := <-bodies; body["state"] != "over" || body["text"] != "Snapshot session 4711 is good again." {
		t.Errorf("%v", body)
	}
}

// refusing answers each call with a status, and counts the calls.
type refusing struct {
	status int
	calls  int
	err    error
}

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls++
	if r.err != nil {
		return nil, r.err
	}
	return &http.Response{StatusCode: r.status, Body: http.NoBody}, nil
}

// A permanent refusal is not retried; other failures are retried for a minute.
func TestWebhookIsBounded(t *testing.T) {
	t.Parallel()
	for status, most := range map[int]int{400: 1, 404: 1, 499: 1, 408: 1000, 425: 1000, 429: 1000, 500: 1000, 503: 1000,
		301: 1000} {
		synctest.Test(t, func(t *testing.T) {
			r := &refusing{status: status}
			begin := time.Now()
			err := vitals.Webhook("http://secret.example/token", &http.Client{Transport: r})(t.Context(), anAlarm())
			took := time.Since(begin)
			if err == nil || strings.Contains(err.Error(), "token") || r.calls > most || most > 1 && r.calls < 5 ||
				took > 90*time.Second || most > 1 && took < 30*time.Second {
				t.Errorf("%d: %v after %d calls and %v", status, err, r.calls, took)
			}
		})
	}
}

// Failures below HTTP are retried too, and their error has the cause without the address.
func TestWebhookHidesItsAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{err: errors.New("no route to host")}
		err := vitals.Webhook("http://secret.example/token", &http.Client{Transport: r})(t.Context(), anAlarm())
		if err == nil || !strings.Contains(err.Error(), "no route to host") || strings.Contains(err.Error(), "token") ||
			r.calls < 5 {
			t.Errorf("%v after %d calls", err, r.calls)
		}
	})
}

// A call that hangs ends after ten seconds, and the end of the context ends all attempts.
func TestWebhookHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		client := &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			calls++
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		begin := time.Now()
		err := vitals.Webhook("http://secret.example/token", client)(ctx, anAlarm())
		if took := time.Since(begin); err == nil || took != 25*time.Second || calls != 3 ||
			strings.Contains(err.Error(), "token") {
			t.Errorf("%v after %d calls and %v", err, calls, took)
		}
	})
	if err := vitals.Webhook("://token", nil)(t.Context(), anAlarm()); err == nil || strings.Contains(err.Error(),
		"token") {
		t.Errorf("%v", err)
	}
}

type tripper func(r *http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
