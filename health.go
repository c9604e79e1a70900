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

// State is what a Host or one of its runners is doing.
type State string

// The states of a Host and of a runner. A Host is waiting before Run, checking until Check has returned, and running
// until its context ends or a runner fails; then it is stopping, and when Run has returned it is ended.
const (
	Waiting  State = "waiting"
	Checking State = "checking"
	Running  State = "running"
	Stopping State = "stopping"
	Ended    State = "ended"
)

// Health is how a Host is at a moment.
type Health struct {
	// Live is false when Run has ended, or is about to because a runner has failed: the process is to be started again.
	// It does not depend on the database, which a new process would not have either.
	Live bool
	// Ready is true while the Host is running and its databases answer.
	Ready   bool
	State   State
	Runners []RunnerHealth // in the order of NewHost
	// Database is why a database does not answer, nil if all do. A Host whose runners have no pool asks none.
	Database error
}

// RunnerHealth is how one runner is.
type RunnerHealth struct {
	Name  string
	State State // Waiting, Running or Ended
	Err   error // of a runner that has ended
}

// databaseWithin is how long a database may take to answer.
const databaseWithin = 2 * time.Second

// Health asks the databases of the runners, for two seconds at most, and returns how the Host is. It is safe for
// concurrent use, before, during and after Run.
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

// ping asks each pool of the runners once.
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

// HealthHandler answers probes: …/live and …/ready, whatever is before them, with 200 or 503, and the health as JSON.
// The health names runners and their errors, so keep it from the public.
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

// MarshalJSON writes errors as texts.
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
