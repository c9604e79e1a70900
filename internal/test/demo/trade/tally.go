package trade

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/edda-go/edda/event"
)

// tally adds up the events of the bus. Safe for concurrent use: workers emit at the same time.
type tally struct {
	mu        sync.Mutex // guards the fields below
	endpoints map[string]*figures
}

// figures are the figures of one endpoint.
type figures struct {
	handled, retries, conflicts, dead, discarded int

	critical    []time.Duration
	first, last time.Time // of handled messages
}

func newTally() *tally { return &tally{endpoints: map[string]*figures{}} }

// observe is the bus.Options.Events of the shop.
func (t *tally) observe(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case event.Handled:
		f := t.of(e.Endpoint)
		f.handled++
		f.critical = append(f.critical, e.Critical)
		if f.last = time.Now(); f.first.IsZero() {
			f.first = f.last.Add(-e.Critical)
		}
	case event.Retried:
		t.of(e.Endpoint).retries++
	case event.Conflicted:
		t.of(e.Endpoint).conflicts++
	case event.DeadLettered:
		t.of(e.Endpoint).dead++
	case event.Discarded:
		t.of(e.Endpoint).discarded++
	}
}

// of is the line of an endpoint. The caller holds mu.
func (t *tally) of(endpoint string) *figures {
	f := t.endpoints[endpoint]
	if f == nil {
		f = &figures{}
		t.endpoints[endpoint] = f
	}
	return f
}

// sum adds up all endpoints.
func (t *tally) sum() (all figures) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.endpoints {
		all.handled += f.handled
		all.retries += f.retries
		all.conflicts += f.conflicts
		all.dead += f.dead
	}
	return all
}

// print writes a line for each endpoint.
func (t *tally) print(out io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "endpoint\thandled\tretries\tconflicts\tdead letters\tmsg/s\tp50\tp99\t") // Flush tells
	for _, name := range slices.Sorted(maps.Keys(t.endpoints)) {
		f := t.endpoints[name]
		slices.Sort(f.critical)
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.0f\t%s\t%s\t\n", name, f.handled, f.retries, f.conflicts,
			f.dead,
			f.rate(), f.quantile(0.5), f.quantile(0.99))
	}
	return table.Flush()
}

func (f *figures) rate() float64 {
	took := f.last.Sub(f.first)
	if took <= 0 {
		return 0
	}
	return float64(f.handled) / took.Seconds()
}

// quantile is a critical time: from when a message was sent, or due, to the commit of its effects.
func (f *figures) quantile(q float64) string {
	if len(f.critical) == 0 {
		return "-"
	}
	d := f.critical[min(int(q*float64(len(f.critical))), len(f.critical)-1)]
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
