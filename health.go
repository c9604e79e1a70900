package edda

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// State is the state of a Host or one of its runners.
type State string

// The states of a Host and of a runner. A Host is waiting before Run, checking until Check has returned, and running
// until its context ends or a runner fails; then it is stopping, and after Run has returned it is ended.
const (
	Waiting  State = "waiting"
	Checking State = "checking"
	Running  State = "running"
	Stopping State = "stopping"
	Ended    State = "ended"
)

// Health is the state of a Host at one moment.
type Health struct {
	// Live is false if Run has ended, or will end because a runner has failed: the process should be restarted. It
	// does not depend on the database, because a new process would not reach the database either.
	Live bool
	// Ready is true while the Host is running and its databases answer.
	Ready   bool
	State   State
	Runners []RunnerHealth // in the order of NewHost
	// Database is the error of a database that does not answer, nil if all answer. It is nil if no runner has a pool.
	Database error
}

// RunnerHealth is the state of one runner.
type RunnerHealth struct {
	Name  string
	State State // Waiting, Running or Ended
	Err   error // of a runner that has ended with an error
}

// databaseWithin is the time limit for all pings of one Health.
const databaseWithin = 2 * time.Second

// Health pings the databases of the runners, for at most two seconds, and returns the state of the Host. It is safe
// for concurrent use, before, during and after Run.
func (h *Host) Health(ctx context.Context) Health {
	now := h.life.now()
	now.Runners = make([]RunnerHealth, len(h.runners))
	for i, r := range h.runners {
		now.Runners[i] = h.life.of(i, strings.Trim(nameOf(r, i), `"`))
		if now.Runners[i].Err != nil {
			now.Live = false
		}
	}
	now.Database = h.ping(ctx)
	now.Ready = now.Live && now.State == Running && now.Database == nil
	return now
}

// ping pings each pool of the runners once.
func (h *Host) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, databaseWithin)
	defer cancel()
	asked := map[*pgxpool.Pool]bool{}
	for _, r := range h.runners {
		c, ok := r.(connector)
		if !ok {
			continue
		}
		pool, _ := c.Connections()
		if asked[pool] {
			continue
		}
		asked[pool] = true
		if err := pool.Ping(ctx); err != nil {
			return fmt.Errorf("the database does not answer: %w", err)
		}
	}
	return nil
}

// HealthHandler answers probes whose path ends in /live or /ready with 200 or 503, and the health as JSON; other
// paths get 404. The health names runners and their errors, so do not publish it.
func HealthHandler(h *Host) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := h.Health(r.Context())
		good := false
		switch path.Base(r.URL.Path) {
		case "live":
			good = now.Live
		case "ready":
			good = now.Ready
		default:
			http.Error(w, "the probes are live and ready", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(now) // the prober may be gone
	})
}

// MarshalJSON encodes h with its errors as text.
func (h Health) MarshalJSON() ([]byte, error) {
	type runner struct {
		Name  string `json:"name"`
		State State  `json:"state"`
		Error string `json:"error,omitempty"`
	}
	all := struct {
		Live     bool     `json:"live"`
		Ready    bool     `json:"ready"`
		State    State    `json:"state"`
		Runners  []runner `json:"runners"`
		Database string   `json:"database,omitempty"`
	}{h.Live, h.Ready, h.State, make([]runner, len(h.Runners)), textOf(h.Database)}
	for i, r := range h.Runners {
		all.Runners[i] = runner{r.Name, r.State, textOf(r.Err)}
	}
	return json.Marshal(all)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
