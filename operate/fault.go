package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
)

// Fault is a fault on a map that the tables show.
type Fault struct {
	Endpoint string // the endpoint with the fault
	Kind     string // of the messages; "" if the fault concerns the endpoint as a whole
	Says     string // the fault in a sentence
}

// unknownKind is the reason of a dead letter whose endpoint has no handler for its kind.
const unknownKind = "unknown kind"

// mostDead is the maximum number of dead letters of a kind that are counted.
const mostDead = 100

// faults returns the faults that the tables show: messages without a consumer, endpoints that no process runs, and
// messages that died because their endpoint does not handle them.
func (e Endpoints) faults(ctx context.Context, b *builder) ([]Fault, error) {
	processes, err := membership.All(ctx, e.o.pool, e.o.schema)
	if err != nil {
		return nil, err
	}
	groups, _, err := e.o.letters.Groups(ctx, e.o.pool, recoverability.GroupFilter{CountTo: mostDead})
	if err != nil {
		return nil, err
	}
	all := append(b.lost(), b.idle(processes)...)
	for _, g := range groups {
		if name := b.base(g.Endpoint); g.Reason == unknownKind && b.known.Endpoints[name] != nil {
			count, are := fmt.Sprint(g.Count), "messages"
			if g.Capped {
				count += " or more"
			} else if g.Count == 1 {
				are = "message"
			}
			all = append(all, Fault{name, g.Kind, fmt.Sprintf("It does not handle %s: %s %s of that kind died here.",
				g.Kind, count, are)})
		}
	}
	slices.SortStableFunc(all, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Endpoint, b.Endpoint), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Says, b.Says))
	})
	return slices.Compact(all), nil
}

// lost returns the faults of messages that were sent and have no consumer.
func (b *builder) lost() (all []Fault) {
	for at, event := range b.nowhere {
		sender := "It"
		if at.saga != "" {
			sender = "Its saga " + at.saga
		}
		says := sender + " has sent " + at.kind
		switch {
		case event:
			says = sender + " publishes " + at.kind + ", which has no subscriber."
		case at.to != "":
			says += " to " + at.to + ", which is not installed any more."
		default:
			says += ", which no endpoint consumes any more."
		}
		if b.known.Endpoints[at.from] != nil {
			all = append(all, Fault{at.from, at.kind, says})
		}
	}
	return all
}

// idle returns the faults of endpoints that no process runs.
func (b *builder) idle(processes []membership.Process) (all []Fault) {
	runs := map[string]bool{}
	for _, p := range processes {
		for _, number := range p.Queues {
			if q := b.known.ByID[number]; q != nil && p.Lives {
				runs[b.base(q.Endpoint)] = true
			}
		}
	}
	for name, q := range b.known.Endpoints {
		if b.base(name) == name && !runs[name] {
			all = append(all, Fault{Endpoint: name, Says: idleText(q)})
		}
	}
	return all
}

func idleText(q *queue.Queue) string {
	if q.Relay {
		return "No process runs this relay."
	}
	return "No process runs it."
}
