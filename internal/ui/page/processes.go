package page

import (
	"context"
	"time"

	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/saga"
)

// processesPage is the page of the processes that run endpoints.
type processesPage struct {
	Head      `json:"-"`
	Processes []processShown `json:"processes"`
}

// processShown is a process.
type processShown struct {
	Session   saga.ID   `json:"session"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	State     string    `json:"state"`
	Endpoints []string  `json:"endpoints"`
	Started   time.Time `json:"started"`
	Renewed   time.Time `json:"renewed"`
	Ended     time.Time `json:"ended,omitzero"`
}

// JSON returns the page itself.
func (p *processesPage) JSON() any { return p }

// Processes reads the processes that are alive, or ended within an hour.
func (s *Source) Processes(ctx context.Context, _ Ask) (Page, error) {
	found, err := s.Op.History().Processes(ctx)
	if err != nil {
		return nil, err
	}
	p := &processesPage{Head: head("processes", "Processes", ""), Processes: []processShown{}}
	for _, f := range found {
		p.Processes = append(p.Processes, processRow(f))
	}
	return p, nil
}

func processRow(f whereabouts.Process) processShown {
	r := processShown{
		Session: f.Session, Host: f.Host, PID: f.PID, Endpoints: append([]string{}, f.Endpoints...), Started: f.Started,
		Renewed: f.Renewed, Ended: f.Ended, State: "running",
	}
	switch {
	case f.Died, f.Ended.IsZero() && !f.Lives:
		r.State = "died"
	case !f.Lives:
		r.State = "ended"
	}
	return r
}
