package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
)

// Arrival is a message from another system: another database with Edda, or any program that writes to a broker.
type Arrival struct {
	// ID tells the message from every other one of its source. A UUID stays the message's id; any other text becomes a
	// UUID that follows from the source and it, and is kept as the header watermill-uuid. Without an ID the message
	// gets a new one, and a second delivery of it is another message.
	ID     string
	Kind   string
	Header map[string]string // as Envelope made them, or those of a foreign sender
	Body   []byte
	// Fault is why it cannot be a message, where whoever brings it knows that already: it becomes a dead letter with
	// this error.
	Fault error
}

// ArriveOptions say where messages come from and go to.
type ArriveOptions struct {
	// From names the source: ids are unique within it. 1 to 255 bytes without control characters. Required.
	From string
	// Endpoint gets the messages. "" publishes them: each endpoint that is subscribed to the kind gets a copy. Ids that
	// arrive for one endpoint say nothing about another.
	Endpoint string
}

// ArrivedState is what became of an Arrival.
type ArrivedState uint8

// What becomes of an Arrival. Each is final, and whoever brought the message may tell its sender that it is there.
const (
	Accepted    ArrivedState = iota // it is in the queue
	Repeated                        // it was there before, and nothing was written
	Unwanted                        // an event that nobody is subscribed to: its id is remembered, and nothing else
	ArrivedDead                     // it cannot be a message here, and is a dead letter with its bytes
)

func (s ArrivedState) String() string {
	return [...]string{"accepted", "repeated", "unwanted", "dead"}[s]
}

// Arrived tells what became of one Arrival.
type Arrived struct {
	ID    saga.ID // under which it is known here
	State ArrivedState
	Err   error // why it is dead
}

// Arrive brings messages into the queues of this database, in one transaction, each id of a source once for as long as
// the inbox keeps it: seven days, unless "edda inbox keep" said otherwise. Messages for one queue are due in the order
// given. Concurrent calls with the same ids wait for each other. Safe for concurrent use.
//
// What cannot be a message here (its kind, its size, its headers, an envelope of a newer version, an id that came
// before with another kind or body) becomes a dead letter, once, and stops nobody. Errors: ErrNotInstalled for an
// endpoint that has no queue; an *OutcomeUnknownError when the connection broke during the commit; other errors of the
// database. After an error bring all of them again: that is always safe for those with an ID.
func (b *Bus) Arrive(ctx context.Context, o ArriveOptions, messages ...Arrival) ([]Arrived, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("arrive: %w", err)
	}
	if len(messages) == 0 {
		return nil, nil
	}
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("arrive from %s: %w", o.From, err)
	}
	defer conn.Release()
	pg.EnsureArrays(conn.Conn().TypeMap())
	a := newArriving(b, conn, o, messages)
	err = a.bring(ctx)
	// dropped, or installed, since the routes were read
	if pg.ClassOf(err) == pg.Unprepared || errors.Is(err, ErrNotInstalled) {
		b.routes.Forget()
		a = newArriving(b, conn, o, messages)
		err = a.bring(ctx)
	}
	if err != nil {
		return nil, err
	}
	a.after(ctx)
	return a.results(), nil
}

func (o ArriveOptions) check() error {
	if err := outbox.CheckSource(o.From); err != nil {
		return fmt.Errorf("From: %w", err)
	}
	if o.Endpoint != "" {
		if err := saga.CheckName(o.Endpoint); err != nil {
			return fmt.Errorf("Endpoint %.80q: %w", o.Endpoint, err)
		}
	}
	return nil
}

// source is what ids are unique within. Two endpoints fed from one topic must not take each other's messages for
// duplicates.
func (o ArriveOptions) source() string {
	if o.Endpoint == "" {
		return o.From
	}
	return o.From + "\n" + o.Endpoint
}
