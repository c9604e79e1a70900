package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/edda-go/edda"
)

// A program is healthy while its handler of probes answers 200; otherwise the command prints the answer.
func TestHealthcheckAsksAProgram(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	host, err := edda.NewHost(edda.RunnerFunc(func(ctx context.Context) error {
		close(running)
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(edda.HealthHandler(host))
	defer server.Close()
	before := runWith(t.Context(), "healthcheck", server.URL+"/health/ready")
	if before.code != exitFailed || before.out != "" {
		t.Errorf("a program that does not run yet: %+v", before)
	}
	says(t, before.err, "/health/ready answers 503 Service Unavailable", `"state":"waiting"`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	<-running
	s := runWith(t.Context(), "healthcheck", server.URL+"/health/ready")
	if want := "healthy: " + server.URL + "/health/ready\n"; s.code != exitDone || s.out != want || s.err != "" {
		t.Errorf("a program that runs: %+v", s)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s = runWith(t.Context(), "healthcheck", "--json", server.URL+"/health/live")
	var said struct {
		Healthy bool
		Error   string
		Asked   string
		Status  int
		Health  struct{ State string }
	}
	if err := json.Unmarshal([]byte(s.out), &said); err != nil {
		t.Fatalf("%v: %s", err, s.out)
	}
	if s.code != exitFailed || said.Healthy || said.Status != http.StatusServiceUnavailable || said.Error == "" ||
		said.Health.State != "ended" || said.Asked != server.URL+"/health/live" {
		t.Errorf("a program that has ended: code %d, %+v", s.code, said)
	}
}

// A redirected page is not healthy, nor is a program that does not answer or does not run.
func TestHealthcheckWantsAnAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/login", http.StatusFound)
		case "/hangs":
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for url, reason := range map[string]string{
		server.URL + "/moved": "answers 302 Found",
		server.URL + "/hangs": "gave up after the timeout of 100ms",
		gone.URL:              "connection refused",
	} {
		s := runWith(t.Context(), "healthcheck", "--timeout", "100ms", url)
		if s.code != exitFailed || !strings.Contains(s.err, reason) {
			t.Errorf("%s: %+v, want %q", url, s, reason)
		}
	}
	for _, url := range []string{"localhost:8080/health/ready", "ftp://localhost/", "http://", ":"} {
		if s := runWith(t.Context(), "healthcheck", url); s.code != exitUsage {
			t.Errorf("%s: %+v", url, s)
		}
	}
	s := runWith(t.Context(), "healthcheck", "--json", gone.URL)
	says(t, s.out, `"healthy": false`, `"status": null`, `"health": null`)
}

// Without a URL the command checks the database, whose schema must fit.
func TestHealthcheckAsksTheDatabase(t *testing.T) {
	w := empty(t)
	says(t, w.want(exitFailed, "healthcheck").err, "there is no schema", "edda migrate up")
	w.want(exitDone, "migrate", "up")
	w.prints(w.want(exitDone, "healthcheck").out, `| healthy: the database`)
	s := runWith(t.Context(), "healthcheck", "--json", "--database", "postgres://me:secret@127.0.0.1:1/shop")
	if s.code != exitFailed || strings.Contains(s.out+s.err, "secret") {
		t.Errorf("%+v", s)
	}
	says(t, s.out, `"healthy": false`, `"asked": "database"`)
}
