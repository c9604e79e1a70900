package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/saga"
)

const (
	mostBody = 1 << 20 // what a bus sends unless it is told otherwise
	mostCap  = 1_000_000
)

// row is a manifest as it is stored: checked, its defaults filled in, its message as bytes.
type row struct {
	name, group, parent   string
	follows               bool
	definition            plan.Definition
	text                  []byte // of the definition
	plan                  *plan.Plan
	priority, retries     int
	overlap, stopped      bool
	retryDelay, retryMost time.Duration
	timeout               time.Duration // 0 is none
	kind                  string
	body                  []byte
}

func checkOwner(owner string) error {
	if err := plan.CheckName(owner); err != nil {
		return fmt.Errorf("owner: %w; it is the name of the program that declares, the same in all of its processes",
			err)
	}
	return nil
}

// rows reads a declaration. The error has a line for each manifest with a fault, so that one start shows them all.
func (s *Store) rows(manifests []Manifest) ([]row, error) {
	rows, faults := make([]row, 0, len(manifests)), []error{}
	seen := make(map[string]bool, len(manifests))
	for _, m := range manifests {
		r, err := s.row(m)
		if err == nil && seen[m.Name] {
			err = fmt.Errorf("manifest %s: it is declared twice", m.Name)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		seen[m.Name] = true
		rows = append(rows, r)
	}
	return rows, some(faults)
}

const mostFaults = 20

// some is an error of some of the faults, and says how many more there are.
func some(faults []error) error {
	if more := len(faults) - mostFaults; more > 0 {
		faults = append(faults[:mostFaults:mostFaults], fmt.Errorf("and %d more", more))
	}
	return errors.Join(faults...)
}

func (s *Store) row(m Manifest) (r row, err error) {
	p, err := m.compile()
	if err != nil {
		return row{}, err
	}
	kind, body, err := s.encode(m.Message)
	if err != nil {
		return row{}, fmt.Errorf("manifest %s: Message: %w", m.Name, err)
	}
	m = m.filled()
	r = row{
		name: m.Name, group: m.Group, plan: p, priority: m.Priority, overlap: m.Overlap, stopped: m.Paused,
		retries: m.Retries, retryDelay: m.RetryDelay, retryMost: m.RetryMost, timeout: m.Timeout, kind: kind,
		body: body,
	}
	r.define(m.definition())
	if r.timeout == NoTimeout {
		r.timeout = 0
	}
	if r.text, err = json.Marshal(r.definition); err != nil {
		return row{}, fmt.Errorf("manifest %s: write its definition: %w", m.Name, err)
	}
	return r, nil
}

// define sets the definition, and what follows from it.
func (r *row) define(d plan.Definition) {
	r.definition = d
	if d.Rule.Kind == plan.After || d.Rule.Kind == plan.Dormant {
		r.parent, r.follows = d.Rule.Parent, d.Rule.Kind == plan.After
	}
}

// encode checks a message as the bus will, and sooner.
func (s *Store) encode(m saga.Message) (kind string, body []byte, err error) {
	kind = m.Kind()
	if err := saga.CheckName(kind); err != nil {
		return "", nil, fmt.Errorf("kind: %w", err)
	}
	if raw, ok := m.(saga.Raw); ok {
		body = raw.Body
	} else if body, err = s.codec.Encode(m); err != nil {
		return "", nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	if len(body) > mostBody {
		return "", nil, fmt.Errorf("%s has a body of %d bytes, the limit is %d: %w", kind, len(body), mostBody,
			saga.ErrTooLarge)
	}
	if body == nil {
		body = []byte{}
	}
	return kind, body, nil
}

// groupRow is a group as it is stored.
type groupRow struct {
	Name     string `json:"-"`
	Max      int    `json:"max,omitempty"`
	Strict   bool   `json:"strict,omitempty"`
	Priority int    `json:"priority,omitempty"`
}

func groupRows(groups []Group) ([]groupRow, error) {
	rows, faults := make([]groupRow, 0, len(groups)), []error{}
	seen := map[string]bool{}
	for _, g := range groups {
		err := g.check()
		if err == nil && seen[g.Name] {
			err = errors.New("it is declared twice")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("group %.140q: %w", clip(g.Name), err))
		}
		seen[g.Name] = true
		rows = append(rows, groupRow(g))
	}
	return rows, some(faults)
}

func (g Group) check() error {
	switch err := plan.CheckName(g.Name); {
	case err != nil:
		return err
	case g.Max < 0 || g.Max > mostCap:
		return fmt.Errorf("Max is %d, want 0 (no cap) to %d: to let nothing begin, pause the group", g.Max, mostCap)
	case g.Strict && g.Max == 0:
		return errors.New("Strict is set, and Max is not: there is no cap to keep")
	case g.Priority < 0 || g.Priority > maxPriority:
		return fmt.Errorf("Priority is %d, want 0 to %d", g.Priority, maxPriority)
	}
	return nil
}
