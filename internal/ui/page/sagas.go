package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/internal/ui/view"
	"github.com/edda-go/edda/internal/ui/words"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// sagasPage is the list of sagas.
type sagasPage struct {
	Head   `json:"-"`
	Sagas  []sagaRow      `json:"sagas"`
	Living []instanceRow  `json:"instances"`
	More   bool           `json:"more"`
	Oldest []oldestRow    `json:"-"`
	Period time.Duration  `json:"-"`
	known  map[string]int // rows by name
	shown  view.Object
	quiet  []persistence.Listed
}

// sagaRow is a saga in numbers of the last day.
type sagaRow struct {
	Name      string  `json:"saga"`
	Endpoint  string  `json:"endpoint"`
	Steps     int64   `json:"handled_24h"`
	Starts    int64   `json:"started_24h"`
	Failed    int64   `json:"failed_24h"`
	Conflicts int64   `json:"conflicts_24h"`
	Bytes     int64   `json:"state_bytes"`     // of a state, on average
	Ended     int64   `json:"ended_1h"`        // mostEnded if there are as many or more
	Hours     []int64 `json:"started_by_hour"` // of the last 24, the current one last
	Defined   bool    `json:"-"`
}

// instanceRow is a living instance in a list.
type instanceRow struct {
	Saga     string    `json:"saga"`
	Key      string    `json:"key"`
	ID       saga.ID   `json:"id"`
	Version  int64     `json:"version"`
	Started  time.Time `json:"started"`
	Changed  time.Time `json:"changed"`
	Timeouts int       `json:"timeouts"`
	Next     time.Time `json:"next_timeout,omitzero"`
	Over     bool      `json:"completed"` // it has completed, and its row is only remembered
}

// JSON returns the output of the command, and the sagas.
func (p *sagasPage) JSON() any {
	return append(slices.Clone(p.shown), "sagas", p.Sagas, "oldest", view.Quiet(p.quiet).View().JSON[1])
}

// Sagas reads the sagas that are found by their definitions, by their counters of a day, or by their instances.
func (s *Source) Sagas(ctx context.Context, _ Ask) (Page, error) {
	p := &sagasPage{Head: head("sagas", "Sagas", "edda saga list"), Sagas: []sagaRow{},
		known: map[string]int{}, Period: 24 * time.Hour}
	counted, err := s.Op.Endpoints().Counters(ctx, 0)
	if err != nil {
		return nil, err
	}
	listed, err := s.Op.Instances().List(ctx, persistence.ListOptions{})
	if err != nil {
		return nil, err
	}
	for name := range s.definitions {
		p.row(name).Defined = true
	}
	for _, c := range counted {
		if c.Saga == "" {
			continue
		}
		r := p.row(c.Saga)
		r.Endpoint = c.Endpoint
		r.Steps, r.Starts = r.Steps+c.Messages.Steps, r.Starts+c.Saves.Starts
		r.Failed, r.Conflicts = r.Failed+c.Messages.Retries+c.Messages.Dead, r.Conflicts+c.Messages.Conflicts
		if c.Saves.Writes > 0 {
			r.Bytes = c.Saves.StateBytes / c.Saves.Writes
		}
	}
	stored, err := s.storedSagas(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range stored {
		p.row(name)
	}
	p.shown = view.Instances(listed, 0).View().JSON
	p.Living, p.More = instanceRows(listed), len(listed) == persistence.DefaultLimit
	slices.SortFunc(p.Sagas, func(a, b sagaRow) int { return cmp.Compare(a.Name, b.Name) })
	if err := addHours(ctx, s, p.Sagas); err != nil {
		return nil, err
	}
	p.quiet, err = s.Op.Instances().List(ctx, persistence.ListOptions{Quiet: true, Limit: oldestShown})
	for n, r := range instanceRows(p.quiet) {
		p.Oldest = append(p.Oldest, oldestRow{r, p.quiet[n].Overdue})
	}
	return p, err
}

func (p *sagasPage) row(name string) *sagaRow {
	at, ok := p.known[name]
	if !ok {
		at = len(p.Sagas)
		p.known[name], p.Sagas = at, append(p.Sagas, sagaRow{Name: name})
	}
	return &p.Sagas[at]
}

func instanceRows(listed []persistence.Listed) []instanceRow {
	rows := make([]instanceRow, 0, len(listed))
	for _, l := range listed {
		i := l.Instance
		r := instanceRow{
			Saga: i.Saga, Key: i.Key, ID: i.ID, Version: i.Version, Started: l.Started, Changed: l.Changed,
			Timeouts: len(i.Pending), Over: !i.RememberedUntil().IsZero(),
		}
		for _, t := range i.Pending {
			if r.Next.IsZero() || t.Due.Before(r.Next) {
				r.Next = t.Due
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// instancesPage is the list of one saga's instances.
type instancesPage struct {
	Head   `json:"-"`
	Saga   string        `json:"saga"`
	Prefix string        `json:"prefix"`
	Living []instanceRow `json:"instances"`
	After  string        `json:"next"` // the key behind which there may be more, "" at the end
	Ended  []lifeShown   `json:"ended"`
	Forms  []act.Form    `json:"-"`

	shown view.Object
}

// lifeShown is a life that has ended: an instance from its start to its end.
type lifeShown struct {
	ID      saga.ID         `json:"instance"`
	Saga    string          `json:"saga"`
	Key     string          `json:"key"`
	Began   time.Time       `json:"began"`
	Ended   time.Time       `json:"ended,omitzero"`
	Outcome history.Outcome `json:"outcome"`
}

// Lasted returns how long it lived.
func (l lifeShown) Lasted() time.Duration { return l.Ended.Sub(l.Began) }

func lifeRow(l history.Life) lifeShown {
	return lifeShown{l.ID, l.Saga, l.Key, l.Began, l.Ended, l.Outcome}
}

// JSON returns the output of the command, and the lives that have ended.
func (p *instancesPage) JSON() any { return append(slices.Clone(p.shown), "ended", p.Ended) }

// endedShown is how many ended lives a list has.
const endedShown = 25

// Instances reads the instances of a saga: the living ones, in the order of their keys, and the last ones to end.
func (s *Source) Instances(ctx context.Context, a Ask) (Page, error) {
	name, prefix := a.Path("saga"), a.Query.Get("prefix")
	command := "edda saga list " + words.Quoted(name)
	if prefix != "" {
		command += " --prefix " + words.Quoted(prefix)
	}
	p := &instancesPage{Head: head("sagas", name, command), Saga: name, Prefix: prefix, Ended: []lifeShown{}}
	listed, err := s.Op.Instances().List(ctx, persistence.ListOptions{
		Saga: name, KeyPrefix: prefix, AfterSaga: name, AfterKey: a.Query.Get("after"),
	})
	if err != nil {
		return nil, err
	}
	p.shown = view.Instances(listed, 0).View().JSON
	if p.Living = instanceRows(listed); len(listed) == persistence.DefaultLimit {
		p.After = listed[len(listed)-1].Instance.Key
	}
	if len(listed) > 0 {
		p.Forms = act.Crowd(name, prefix, a.Bodies)
	}
	ended, err := s.Op.History().Ended(ctx, history.EndedOf{Saga: name, Most: endedShown})
	if err != nil {
		return nil, err
	}
	for _, l := range ended {
		p.Ended = append(p.Ended, lifeRow(l))
	}
	if len(p.Living)+len(p.Ended) == 0 && s.definitions[name] == nil && prefix == "" {
		known, err := sagaNames(ctx, s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(known, name) {
			return nil, missing(fmt.Sprintf("The saga %q has no instance here, and no counters.", view.Escape(name)))
		}
	}
	return p, nil
}

// sagaNames returns the names of all sagas that are found.
func sagaNames(ctx context.Context, s *Source) ([]string, error) {
	names := map[string]bool{}
	for name := range s.definitions {
		names[name] = true
	}
	counted, err := s.Op.Endpoints().Counters(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, c := range counted {
		if c.Saga != "" {
			names[c.Saga] = true
		}
	}
	stored, err := s.storedSagas(ctx)
	for _, name := range stored {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names)), err
}

// storedSagas returns the names of sagas that have living instances, or ended instances in the history. It reads one
// instance of each, however many there are.
func (s *Source) storedSagas(ctx context.Context) (names []string, err error) {
	ended, err := s.Op.History().Ended(ctx, history.EndedOf{Each: true, Most: mostSagas})
	if err != nil {
		return nil, err
	}
	for _, l := range ended {
		names = append(names, l.Saga)
	}
	after := ""
	for range mostSagas {
		listed, err := s.Op.Instances().List(ctx, persistence.ListOptions{AfterSaga: after, Limit: 1})
		if err != nil || len(listed) == 0 {
			return names, err
		}
		name := listed[0].Instance.Saga
		names, after = append(names, name), name+"\x01" // no name of a saga has this character
	}
	return names, nil
}

// split divides "saga/key" or "saga key" into its two parts.
func split(text string) (name, key string, ok bool) {
	if name, key, ok = strings.Cut(text, "/"); ok {
		return strings.TrimSpace(name), strings.TrimSpace(key), true
	}
	name, key, ok = strings.Cut(text, " ")
	return name, strings.TrimSpace(key), ok
}
