package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/edda-go/edda/internal/base/wire"
)

var (
	// ErrNoRoute means that no endpoint of this database consumes the kind, or that the named endpoint does not
	// exist.
	ErrNoRoute = errors.New("no endpoint consumes it")
	// ErrAmbiguous means that several endpoints consume the kind, so the target of a command is not clear.
	ErrAmbiguous = errors.New("several endpoints consume it")
	// ErrOtherDatabase means that a transaction is not of the router's database and schema.
	ErrOtherDatabase = errors.New("the transaction belongs to a different database or schema than the bus")
	// ErrNotInstalled means that an endpoint has no queue, and that it may not be created here.
	ErrNotInstalled = errors.New("the endpoint's queue is not installed")
)

// Routes map kinds to the endpoints that consume them, as of one generation of the subscriptions. They never change.
type Routes struct {
	Generation int64
	SchemaID   string
	Endpoints  map[string]*Queue
	ByID       map[int]*Queue
	Kinds      map[string][]*Queue
	Overrides  map[string]string // kind to endpoint
	Bases      map[string]string // the endpoints of partitions, by the names of the partitions
}

// Command returns the one queue for a command of this kind; to, if given, takes precedence.
func (t *Routes) Command(kind, to string) (*Queue, error) {
	if to == "" {
		to = t.Overrides[kind]
	}
	if to != "" {
		if q := t.Endpoints[to]; q != nil {
			return q, nil
		}
		return nil, fmt.Errorf("send %s to endpoint %.80q: %w: run that endpoint once, "+
			"or install it (the command is \"edda migrate install\")", kind, to, ErrNoRoute)
	}
	switch queues := t.Kinds[kind]; len(queues) {
	case 1:
		return queues[0], nil
	case 0:
		return nil, fmt.Errorf("send %s: %w%s: run the endpoint that handles it once, or install it, "+
			"or name one with bus.Route or saga.To", kind, ErrNoRoute, wire.Hint(kind, t.Kinds))
	default:
		return nil, fmt.Errorf("send %s: %w (%s): name one with bus.Route or saga.To, or publish it",
			kind, ErrAmbiguous, strings.Join(names(queues), ", "))
	}
}

// mostNamed bounds how many endpoints an error names.
const mostNamed = 10

func names(queues []*Queue) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Endpoint
	}
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprint(more, " more"))
	}
	return names
}
