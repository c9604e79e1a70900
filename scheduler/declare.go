package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
)

const (
	mostBody = 1 << 20 // the default limit of a bus
	mostCap  = 1_000_000
)

// row is a manifest in its stored form: checked, with its defaults filled in, its message as bytes.
type row struct {
	name, group, parent   string
	follows               bool
	definition            plan.Definition
	text                  []byte // of the definition
	plan                  *plan.Plan
	priority, retries     int
	overlap, stopped      bool
	retryDelay, retryMost time.Duration
	timeout               time.Duration // 0 is no timeout
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

// encoder converts declarations to rows.
type encoder struct{ codec saga.Codec }

// newEncoder returns an encoder; a nil codec is saga.JSON.
func newEncoder(codec saga.Codec) encoder {
	if codec == nil {
		codec = saga.JSON
	}
	return encoder{codec}
}

// rows converts a declaration. Its error has a line for each faulty manifest, so that one start reports them all.
func (e encoder) rows(manifests []Manifest) ([]row, error) {
	rows, faults := make([]row, 0, len(manifests)), []error{}
	seen := make(map[string]bool, len(manifests))
	for _, m := range manifests {
		r, err := e.row(m)
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

// some returns an error with the first faults and the number of the others.
func some(faults []error) error {
	if more := len(faults) - mostFaults; more > 0 {
		faults = append(faults[:mostFaults:mostFaults], fmt.Errorf("and %d more", more))
	}
	return errors.Join(faults...)
}

func (e encoder) row(m Manifest) (r row, err error) {
	p, err := m.compile()
	if err != nil {
		return row{}, err
	}
	kind, body, err := e.encode(m.Message)
	if err != nil {
		return row{}, fmt.Errorf("manifest %s: Message: %w", m.Name, err)
	}
	m = m.filled()
	r = row{
		name: m.Name, group: m.Group, plan: p, priority: m.Priority, overlap: m.Overlap, stopped: m.Paused,
		retries: m.Retries, retryDelay: m.RetryDelay, retryMost: m.MaxRetryDelay, timeout: m.Timeout, kind: kind,
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

// define sets the definition and the fields that are derived from it.
func (r *row) define(d plan.Definition) {
	r.definition = d
	if d.Rule.Kind == plan.After || d.Rule.Kind == plan.Dormant {
		r.parent, r.follows = d.Rule.Parent, d.Rule.Kind == plan.After
	}
}

// encode makes the checks of the bus, before the message is sent.
func (e encoder) encode(m saga.Message) (kind string, body []byte, err error) {
	kind = m.Kind()
	if err := saga.CheckName(kind); err != nil {
		return "", nil, fmt.Errorf("kind: %w", err)
	}
	if raw, ok := m.(saga.Raw); ok {
		body = raw.Body
	} else if body, err = e.codec.Encode(m); err != nil {
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

// groupRow is a group in its stored form.
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
		return errors.New("Strict needs a Max: set it, or leave out Strict")
	case g.Priority < 0 || g.Priority > maxPriority:
		return fmt.Errorf("Priority is %d, want 0 to %d", g.Priority, maxPriority)
	}
	return nil
}

// checkParents reports parents that are neither declared nor stored, and circles of manifests that follow each other,
// because they would never fire. stored maps stored manifests that are not declared here, and the manifests that they
// follow, to their parents; "" is no parent.
func checkParents(rows []row, stored map[string]string, orphans map[string]bool) error {
	parents, faults := make(map[string]string, len(rows)+len(stored)), []error{}
	for name, parent := range stored {
		parents[name] = parent
	}
	declared := make(map[string]bool, len(rows))
	for _, r := range rows {
		declared[r.name] = true
		if r.follows {
			parents[r.name] = r.parent
		} else {
			parents[r.name] = ""
		}
	}
	for _, r := range rows {
		_, known := parents[r.parent]
		if r.parent != "" && (!known || orphans[r.parent] && !declared[r.parent]) {
			faults = append(faults, fmt.Errorf("manifest %q: When: its parent %q is neither declared nor stored",
				r.name, r.parent))
		}
	}
	if circle := findCircle(parents); circle != nil {
		faults = append(faults, fmt.Errorf("manifests follow each other in a circle, and would "+
			"never fire: %s", strings.Join(circle, " after ")))
	}
	return some(faults)
}

// findCircle is Kahn's algorithm: it removes manifests without followers until it finds no more. Each manifest
// follows at most one other, so only circles remain. It returns one circle, with its first name repeated at the end.
func findCircle(parents map[string]string) []string {
	followers := map[string]int{}
	for name, parent := range parents {
		if _, known := parents[parent]; parent != "" && known {
			followers[parent]++
		}
		followers[name] += 0
	}
	var ready []string
	for name, n := range followers {
		if n == 0 {
			ready = append(ready, name)
		}
	}
	for len(ready) > 0 {
		name := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		delete(followers, name)
		parent := parents[name]
		if _, left := followers[parent]; !left {
			continue
		}
		if followers[parent]--; followers[parent] == 0 {
			ready = append(ready, parent)
		}
	}
	// A manifest that has followers but no parent was removed after its followers, so it is not left here.
	var left []string
	for name := range followers {
		left = append(left, name)
	}
	if len(left) == 0 {
		return nil
	}
	circle := []string{slices.Min(left)}
	for name := parents[circle[0]]; name != circle[0]; name = parents[name] {
		circle = append(circle, name)
	}
	return append(circle, circle[0])
}
