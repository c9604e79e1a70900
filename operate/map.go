package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// Map has the endpoints, and the kinds that they send to each other.
type Map struct {
	Endpoints []MapEndpoint // in the order of their names, without partitions
	Edges     []Edge        // in the order of From, Saga, Kind and To
	Faults    []Fault       // in the order of Endpoint and Kind
	Messages  int           // number of history entries behind Edges
	Since     time.Time     // time of the first of them, zero if Messages is 0
	Until     time.Time     // time of the last of them
}

// MapEndpoint is one endpoint or relay of a Map.
type MapEndpoint struct {
	Name  string
	Relay bool
	Kinds []string // kinds that it subscribes to, sorted
	Sagas []string // sagas that are known to run in it, sorted
}

// Edge is a kind that one endpoint sends to another.
type Edge struct {
	From      string // "" is outside of Edda, or, if Seen is 0, no observed sender
	Saga      string // the saga that sends it; "" if a plain handler does, or if it is unknown
	Kind      string
	To        string
	Event     bool // it was published
	Seen      int64
	PerMinute float64 // from Map.Since until Map.Until
}

// mostPages is the number of transactions of the history that are read.
const mostPages = 500

// Map returns the endpoints, and the kinds that they send to each other, without timeouts. It reads the subscriptions,
// and the newest 500 transactions of the history, with a few bounded statements, locks nothing and needs only SELECT.
//
// Only the history stores who sends a kind, so Map returns the senders that the history has recorded lately. If the
// history has no sender of a kind that an endpoint subscribes to, Map returns an edge without a sender. An endpoint
// that keeps no history, or only a sample of it, appears to send less than it does, or nothing.
//
// Map.Faults has the faults that the tables show: an endpoint that no process runs, an event that was published and has
// no subscriber, a message that was sent to an endpoint that no longer exists, and a kind whose messages died in an
// endpoint because the endpoint has no handler for it.
func (e Endpoints) Map(ctx context.Context) (m Map, err error) {
	known, err := e.o.routes.Reload(ctx, e.o.pool)
	if err != nil {
		return m, fmt.Errorf("map the endpoints: %w", pgerr.Explain(err))
	}
	counted, err := e.o.counters.Hours(ctx, e.o.pool, hours*time.Hour)
	if err != nil {
		return m, fmt.Errorf("map the endpoints: %w", pgerr.Explain(err))
	}
	told, err := e.o.entries.Recent(ctx, e.o.pool, mostPages)
	if err != nil {
		return m, fmt.Errorf("map the endpoints: %w", pgerr.Explain(err))
	}
	b := newBuilder(known)
	for _, h := range counted {
		b.runs(h.Endpoint, h.Saga)
	}
	for n := range told {
		b.add(&told[n])
	}
	m = Map{Endpoints: b.endpoints(), Edges: b.all(), Messages: len(told)}
	if len(told) > 0 {
		m.Since, m.Until = told[0].At, told[len(told)-1].At
		for n := range m.Edges {
			m.Edges[n].PerMinute = float64(m.Edges[n].Seen) / max(m.Until.Sub(m.Since), time.Minute).Minutes()
		}
	}
	if m.Faults, err = e.faults(ctx, b); err != nil {
		return m, fmt.Errorf("map the endpoints: %w", pgerr.Explain(err))
	}
	return m, nil
}

// edge identifies an Edge.
type edge struct{ from, saga, kind, to string }

// builder collects a map.
type builder struct {
	known *queue.Routes
	sagas map[string]map[string]bool // by endpoint
	edges map[edge]*Edge

	nowhere map[edge]bool // by message without a consumer: whether it is an event
}

func newBuilder(known *queue.Routes) *builder {
	return &builder{known, map[string]map[string]bool{}, map[edge]*Edge{}, map[edge]bool{}}
}

// base returns the endpoint of a partition, or the endpoint itself.
func (b *builder) base(endpoint string) string { return cmp.Or(b.known.Bases[endpoint], endpoint) }

// runs records that a saga runs in an endpoint.
func (b *builder) runs(endpoint, name string) {
	endpoint = b.base(endpoint)
	if name == "" || b.known.Endpoints[endpoint] == nil {
		return
	}
	if b.sagas[endpoint] == nil {
		b.sagas[endpoint] = map[string]bool{}
	}
	b.sagas[endpoint][name] = true
}

// add adds an attempt: the origin of its message, if that was outside, and the messages that it sent.
func (b *builder) add(e *history.Entry) {
	b.runs(e.Endpoint, e.Saga)
	if e.Info.From == "" && e.Info.Intent != saga.Timer && e.Info.RelatedTo.IsZero() && e.Info.Attempt <= 1 {
		b.seen(edge{"", "", e.Info.Kind, b.base(e.Endpoint)}, e.Info.Intent == saga.Event)
	}
	for n := range e.Sent {
		out := &e.Sent[n]
		if out.Intent == saga.Timer {
			continue
		}
		consumers := b.consumers(out)
		if len(consumers) == 0 {
			b.nowhere[edge{b.base(e.Endpoint), e.Saga, out.Kind, out.To}] = out.Intent == saga.Event
		}
		for _, to := range consumers {
			b.seen(edge{b.base(e.Endpoint), e.Saga, out.Kind, to}, out.Intent == saga.Event)
		}
	}
}

// consumers returns the endpoints that receive a message, without removed and unknown ones.
func (b *builder) consumers(m *history.Message) (all []string) {
	if m.To != "" {
		if to := b.base(m.To); b.known.Endpoints[to] != nil {
			all = append(all, to)
		}
		return all
	}
	for _, q := range b.known.Kinds[m.Kind] {
		all = append(all, b.base(q.Endpoint))
	}
	return all
}

func (b *builder) seen(at edge, event bool) {
	if b.known.Endpoints[at.to] == nil {
		return
	}
	if b.edges[at] == nil {
		b.edges[at] = &Edge{From: at.from, Saga: at.saga, Kind: at.kind, To: at.to, Event: event}
	}
	b.edges[at].Seen++
}

func (b *builder) endpoints() []MapEndpoint {
	kinds := b.kinds()
	all := []MapEndpoint{}
	for name, q := range b.known.Endpoints {
		if b.base(name) == name {
			all = append(all, MapEndpoint{Name: name, Relay: q.Relay, Kinds: slices.Sorted(maps.Keys(kinds[name])),
				Sagas: slices.Sorted(maps.Keys(b.sagas[name]))})
		}
	}
	slices.SortFunc(all, func(a, b MapEndpoint) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// kinds returns the kinds that each endpoint subscribes to.
func (b *builder) kinds() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for kind, queues := range b.known.Kinds {
		for _, q := range queues {
			name := b.base(q.Endpoint)
			if all[name] == nil {
				all[name] = map[string]bool{}
			}
			all[name][kind] = true
		}
	}
	return all
}

// all returns the edges, and one edge without a sender for each subscription to a kind that was not observed.
func (b *builder) all() []Edge {
	sent := map[[2]string]bool{}
	for at := range b.edges {
		sent[[2]string{at.kind, at.to}] = true
	}
	all := []Edge{}
	for name, kinds := range b.kinds() {
		for kind := range kinds {
			if !sent[[2]string{kind, name}] {
				all = append(all, Edge{Kind: kind, To: name})
			}
		}
	}
	for _, e := range b.edges {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Saga, b.Saga), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.To, b.To))
	})
	return all
}
