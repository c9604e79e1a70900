package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
)

// IngestMessage is a message from a foreign system: a second database with Edda, or a program that writes to a broker.
type IngestMessage struct {
	// ID distinguishes the message from all other messages of its source. A UUID stays the message's id; any other
	// text becomes a UUID that is computed from the source and the text, and is kept as the header watermill-uuid.
	// Without an ID the message gets a new one, and a second delivery of it is a second message.
	ID     string
	Kind   string
	Header map[string]string // as Envelope made them, or headers of a foreign sender
	Body   []byte
	// Fault, if not nil, is why it cannot be a message: it becomes a dead letter with this error.
	Fault error
}

// IngestOptions name the source and the destination of messages.
type IngestOptions struct {
	// From names the source: ids are unique within it. Required: 1 to 255 bytes without control characters.
	From string
	// Endpoint gets the messages. "" publishes them: each endpoint that is subscribed to the kind gets a copy. Ids
	// are unique per source and Endpoint.
	Endpoint string
}

// IngestState is the result for an IngestMessage.
type IngestState uint8

// The states of an IngestMessage. Each is final, so the caller may acknowledge the message to its sender.
const (
	Accepted   IngestState = iota // it is in the queue
	Repeated                      // it came before, and nothing was written
	Unwanted                      // an event without a subscriber: only its id is recorded
	IngestDead                    // it cannot be a message here, and is a dead letter with its bytes
)

func (s IngestState) String() string {
	return [...]string{"accepted", "repeated", "unwanted", "dead"}[s]
}

// IngestResult is the result for one IngestMessage.
type IngestResult struct {
	ID    saga.ID // its id in this database
	State IngestState
	Err   error // why it is dead
}

// Ingest implements Ingest of a bus.
func (b *Border) Ingest(ctx context.Context, o IngestOptions, messages ...IngestMessage) ([]IngestResult, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	if len(messages) == 0 {
		return nil, nil
	}
	for n := range messages {
		if err := messages[n].fits(); err != nil {
			return nil, fmt.Errorf("ingest from %s: message %d of %d: %w", o.From, n+1, len(messages), err)
		}
	}
	conn, err := b.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("ingest from %s: %w", o.From, err)
	}
	defer conn.Release()
	pg.EnsureArrays(conn.Conn().TypeMap())
	t := newIngestTx(ctx, b, conn, o, messages)
	err = t.run(ctx)
	if pgerr.ClassOf(err) == pgerr.Unprepared || errors.Is(err, queue.ErrNotInstalled) {
		b.Routes.Forget() // a queue was dropped, or installed, since they were read
		t = newIngestTx(ctx, b, conn, o, messages)
		err = t.run(ctx)
	}
	if err != nil {
		return nil, err
	}
	t.after(ctx)
	return t.results(), nil
}

// fits returns an error if a queue could not store the message, because its dead letter could never be retried. A
// message that fits, but is larger than a send may be, becomes a dead letter.
func (m *IngestMessage) fits() error {
	if len(m.Body) > wire.MostBody {
		return fmt.Errorf("its body has %d bytes, limit %d: %w", len(m.Body), wire.MostBody, saga.ErrTooLarge)
	}
	header := len(m.ID) + len(m.Kind)
	for name, value := range m.Header {
		header += len(name) + len(value)
	}
	if header > wire.MostHeader {
		return fmt.Errorf("its id, kind and headers have %d bytes, limit %d: %w", header, wire.MostHeader,
			saga.ErrTooLarge)
	}
	return nil
}

func (o IngestOptions) check() error {
	if err := CheckSource(o.From); err != nil {
		return fmt.Errorf("From: %w", err)
	}
	if o.Endpoint != "" {
		if err := saga.CheckName(o.Endpoint); err != nil {
			return fmt.Errorf("Endpoint %.80q: %w", o.Endpoint, err)
		}
	}
	return nil
}

// source returns the name within which ids are unique. Two endpoints that are fed from one topic must not treat each
// other's messages as duplicates.
func (o IngestOptions) source() string {
	if o.Endpoint == "" {
		return o.From
	}
	return o.From + "\n" + o.Endpoint
}
