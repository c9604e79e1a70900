package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/counters"
)

const (
	hours   = 24 // of a Pace, including the present one
	minutes = 60 // of a Recent, including the present one
)

// Pace counts the messages of one saga of an endpoint in all processes, hour by hour. The last element is the present
// hour.
type Pace struct {
	Endpoint string
	Saga     string // "" for the endpoint's plain handlers
	Handled  [24]int64
	Started  [24]int64 // instances

	// PerMinute is the average number of messages handled in a minute. It is the average Over the counted part of the
	// present hour and the hour before. It is 0 if no message was handled.
	PerMinute float64
	Over      time.Duration

	Recent Recent
}

// Recent counts messages minute by minute, in all processes. The last element of each array is the present minute. A
// message counts when its process writes the counters: up to ten seconds after it was handled.
type Recent struct {
	Handled [60]int64
	Retried [60]int64 // failed attempts that are retried
	Dead    [60]int64

	// Untold is the number of messages handled in the present hour and the hour before by programs of an older
	// version, which count only by the hour.
	Untold int64
}

// Known reports whether the counts by the minute are usable: they are not if only older programs have counted.
func (r *Recent) Known() bool { return r.Untold == 0 || r.Handled != [60]int64{} }

// Pace returns the counts of each endpoint in the last 24 hours, for all its sagas and plain handlers together, in the
// order of their names. Saga is "". Relays are left out, because they do not count. The counters are approximate, like
// SagaCounters. Pace reads one row for each saga and hour; the last two hours also have counts by the minute.
func (e Endpoints) Pace(ctx context.Context) ([]Pace, error) {
	known, err := e.o.routes.Reload(ctx, e.o.pool)
	if err != nil {
		return nil, fmt.Errorf("read the pace of endpoints: %w", pgerr.Explain(err))
	}
	counted, err := e.SagaPace(ctx)
	if err != nil {
		return nil, err
	}
	all := []Pace{}
	for _, name := range slices.Sorted(maps.Keys(known.Endpoints)) {
		if known.Endpoints[name].Relay {
			continue
		}
		sum := Pace{Endpoint: name}
		for n := range counted {
			if counted[n].Endpoint == name {
				sum.add(&counted[n])
			}
		}
		all = append(all, sum)
	}
	return all, nil
}

func (p *Pace) add(of *Pace) {
	for n := range hours {
		p.Handled[n] += of.Handled[n]
		p.Started[n] += of.Started[n]
	}
	p.PerMinute += of.PerMinute
	p.Over = max(p.Over, of.Over)
	r := &p.Recent
	for n := range minutes {
		r.Handled[n] += of.Recent.Handled[n]
		r.Retried[n] += of.Recent.Retried[n]
		r.Dead[n] += of.Recent.Dead[n]
	}
	r.Untold += of.Recent.Untold
}

// SagaPace returns the counts of sagas and plain handlers in the last 24 hours, in the order of endpoints and sagas.
func (e Endpoints) SagaPace(ctx context.Context) ([]Pace, error) {
	rows, err := e.o.counters.Hours(ctx, e.o.pool, hours*time.Hour)
	if err != nil {
		return nil, fmt.Errorf("read the pace of endpoints: %w", pgerr.Explain(err))
	}
	slices.SortStableFunc(rows, func(a, b counters.Hour) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Saga, b.Saga))
	})
	all := []Pace{}
	for from := 0; from < len(rows); {
		until := from + 1
		for until < len(rows) && rows[until].Endpoint == rows[from].Endpoint && rows[until].Saga == rows[from].Saga {
			until++
		}
		all = append(all, paceOf(rows[from:until]))
		from = until
	}
	return all, nil
}

// recent is the number of hours that the rate is computed from.
const recent = 2

func paceOf(rows []counters.Hour) Pace {
	p := Pace{Endpoint: rows[0].Endpoint, Saga: rows[0].Saga}
	var since, now time.Time
	for _, r := range rows {
		ago := int(r.Now.Truncate(time.Hour).Sub(r.Hour) / time.Hour)
		if ago < 0 || ago >= hours {
			continue
		}
		p.Handled[hours-1-ago], p.Started[hours-1-ago] = r.Steps, r.Starts
		p.Recent.add(&r)
		if now = r.Now; ago < recent && since.IsZero() { // rows are in the order of hours
			since = r.First
		}
	}
	if !since.IsZero() {
		p.Over = max(now.Sub(since), time.Minute)
		p.PerMinute = float64(p.Handled[hours-1]+p.Handled[hours-recent]) / p.Over.Minutes()
	}
	return p
}

// add adds the counts by the minute of an hour. Minutes that are too old are left out.
func (r *Recent) add(h *counters.Hour) {
	if h.MinuteSteps == nil {
		return
	}
	told, now := int64(0), h.Now.Truncate(time.Minute)
	for n, steps := range h.MinuteSteps {
		told += steps
		at := h.Hour.Add(time.Duration(n) * time.Minute)
		if ago := int(now.Sub(at) / time.Minute); ago >= 0 && ago < minutes {
			r.Handled[minutes-1-ago] = steps
			r.Retried[minutes-1-ago] = h.MinuteRetries[n]
			r.Dead[minutes-1-ago] = h.MinuteDead[n]
		}
	}
	r.Untold += h.Steps - told
}
