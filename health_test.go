package edda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5/pgxpool"
)

// probe sends the probe live or ready, and returns the status and the health.
func probe(t *testing.T, h *edda.Host, what string) (status int, health struct {
	Live, Ready bool
	State       string
	Database    string
	Runners     []struct{ Name, State, Error string }
}) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health/"+what, nil)
	edda.HealthHandler(h).ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &health); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, health
}

// wantProbes compares the answers to both probes.
func wantProbes(t *testing.T, h *edda.Host, when string, live, ready int) {
	t.Helper()
	for what, want := range map[string]int{"live": live, "ready": ready} {
		if status, health := probe(t, h, what); status != want {
			t.Errorf("%s, %s is %d, want %d: %+v", when, what, status, want, health)
		}
	}
}

// A host is live until a runner fails, and ready while it runs and its database answers.
func TestHealthOfAHost(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, true, bus.Options{})
	doors := newEndpoint(t, b, "doors", 1, bus.HandleTx(ignore))
	if err := doors.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	running, fails, failed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	broken := errors.New("no such door")
	first := edda.RunnerFunc(func(context.Context) error {
		close(running)
		<-fails
		return broken
	})
	last := edda.RunnerFunc(func(ctx context.Context) error { // ends after the first has failed
		<-ctx.Done()
		<-failed
		return nil
	})
	host, err := edda.NewHost(doors, first, last)
	if err != nil {
		t.Fatal(err)
	}
	const ok, down = http.StatusOK, http.StatusServiceUnavailable
	wantProbes(t, host, "before Run", ok, down)
	ended := make(chan error, 1)
	go func() { ended <- host.Run(t.Context()) }()
	<-running
	wantProbes(t, host, "while it runs", ok, ok)
	if _, h := probe(t, host, "ready"); h.State != "running" || len(h.Runners) != 3 || h.Runners[0].Name != "doors" ||
		h.Runners[0].State != "running" {
		t.Errorf("%+v", h)
	}
	if err := host.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("a second Run beside the first: %v", err)
	}
	wantProbes(t, host, "after a second Run was refused", ok, ok)
	close(fails)
	for host.Health(t.Context()).State == edda.Running {
	}
	wantProbes(t, host, "after a runner has failed", down, down)
	if _, h := probe(t, host, "live"); h.State != "stopping" || h.Runners[1].Error != broken.Error() {
		t.Errorf("%+v", h)
	}
	close(failed)
	if err := <-ended; !errors.Is(err, broken) {
		t.Fatal(err)
	}
	wantProbes(t, host, "after Run", down, down)
}

// If a database does not answer, the host is live but not ready, because a new process would not help.
func TestHealthWithoutADatabase(t *testing.T) {
	t.Parallel()
	pool := pgdev.Pool(t)
	b := newBus(t, pool, true, bus.Options{})
	doors := newEndpoint(t, b, "doors", 1, bus.HandleTx(ignore))
	if err := doors.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	running := make(chan struct{})
	host, err := edda.NewHost(doors, edda.RunnerFunc(func(ctx context.Context) error {
		close(running)
		<-ctx.Done()
		return ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	<-running
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if h := host.Health(away); !h.Live || h.Ready || h.Database == nil {
		t.Errorf("%+v", h)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if h := host.Health(t.Context()); h.Live || h.State != edda.Ended || h.Runners[1].Err != nil {
		t.Errorf("after a clean end: %+v", h)
	}
}

// A host is ready only while all of its databases answer.
func TestHealthAsksEachDatabase(t *testing.T) {
	t.Parallel()
	for away := range 2 {
		pools := []*pgxpool.Pool{pgdev.Pool(t), pgdev.Pool(t)}
		var runners []edda.Runner
		for n, pool := range pools {
			runners = append(runners, newEndpoint(t, newBus(t, pool, false, bus.Options{}), fmt.Sprint("doors", n), 1,
				bus.HandleTx(ignore)))
		}
		host, err := edda.NewHost(runners...)
		if err != nil {
			t.Fatal(err)
		}
		if h := host.Health(t.Context()); h.Database != nil {
			t.Errorf("both answer: %v", h.Database)
		}
		pools[away].Close()
		if h := host.Health(t.Context()); h.Database == nil {
			t.Errorf("database %d of 2 does not answer: %+v", away, h)
		}
	}
}

func TestProbeThatIsNotKnown(t *testing.T) {
	t.Parallel()
	host, err := edda.NewHost()
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	edda.HealthHandler(host).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}
