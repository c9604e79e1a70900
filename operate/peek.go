package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/store/queue"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// PeekOptions select messages of a queue. Every zero is a default, and a negative number is an error.
type PeekOptions struct {
	AfterDue  time.Time // continue after the message with this Due and AfterID; zero: from the head
	AfterID   saga.ID
	Limit     int // messages, at most 200; 0 is 50
	BodyBytes int // of each body; 0 is 4 KiB, at most 64 KiB
}

const (
	peekRows, mostPeekRows   = 50, 200
	peekBytes, mostPeekBytes = 4 << 10, 64 << 10
)

// QueuedMessage is a message in a queue. A worker may be handling it at the same time.
type QueuedMessage struct {
	Info        saga.Info // with its headers; Attempt is the number of the next attempt
	Ready       bool      // the message is due, by the database's clock
	Conflicts   int       // saves that it has lost since its last failure
	FirstFailed time.Time // zero if it has not failed
	LastError   string    // the beginning of the error of its last failed attempt; "" if it has not failed
	Body        []byte    // the beginning of the body, see PeekOptions.BodyBytes
	Size        int       // bytes of the whole body
	Faulty      error     // not nil if its header cannot be read completely; Info has the readable part
}

// Messages lists, finds and cancels messages in queues.
type Messages struct{ o *Operator }

// Messages returns the methods for messages.
func (o *Operator) Messages() Messages { return Messages{o} }

// Peek reads messages of a queue in the order of their due times. It changes nothing, locks nothing and waits for
// nothing; the answer may be out of date when it arrives. Texts and bodies are returned as their senders wrote them,
// including control characters: escape them before you show them.
//
// It returns ErrNotInstalled if the endpoint has no queue.
func (m Messages) Peek(ctx context.Context, endpoint string, options PeekOptions) ([]QueuedMessage, error) {
	messages, err := m.peek(ctx, endpoint, options)
	if err != nil {
		return nil, fmt.Errorf("peek into the queue of endpoint %.80q: %w", endpoint, err)
	}
	return messages, nil
}

func (m Messages) peek(ctx context.Context, endpoint string, p PeekOptions) (messages []QueuedMessage, err error) {
	if p.Limit < 0 || p.Limit > mostPeekRows || p.BodyBytes < 0 {
		return nil, fmt.Errorf("Limit is %d and BodyBytes %d, want a limit of 0 (the default) to %d, and 0 or more "+
			"bytes", p.Limit, p.BodyBytes, mostPeekRows)
	}
	limit, bytes := cmp.Or(p.Limit, peekRows), min(cmp.Or(p.BodyBytes, peekBytes), mostPeekBytes)
	q, err := m.o.find(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	pipeline := &pgx.Batch{}
	m.o.queueLook(pipeline)
	pipeline.Queue(q.SQL("peek"), limit, queue.Position{Due: p.AfterDue, ID: p.AfterID}.DueParam(),
		[16]byte(p.AfterID), bytes).Query(func(rows pgx.Rows) (err error) {
		messages, err = readQueued(rows)
		return err
	})
	if err := m.o.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, pgerr.Explain(err)
	}
	return messages, nil
}

func readQueued(rows pgx.Rows) (messages []QueuedMessage, err error) {
	reader := queue.Reader{Arena: new(queue.Arena)}
	for rows.Next() {
		messages = append(messages, queuedOf(&reader, pg.CurrentRow(rows)))
	}
	return messages, rows.Err()
}

const columnLastError = queue.ColumnMore + 1

func queuedOf(reader *queue.Reader, row pg.Row) QueuedMessage {
	var r queue.Row
	reader.Read(row, &r)
	m := QueuedMessage{
		Info:      saga.Info{ID: r.ID, Kind: r.Kind, Sent: r.Sent, Due: r.Due, Attempt: r.Attempt + 1},
		Ready:     !r.Due.After(row.Time(queue.ColumnNow)),
		Conflicts: r.Conflict, FirstFailed: r.FirstFailed, LastError: row.Text(columnLastError),
		Body: r.Body, Size: int(row.Int(queue.ColumnMore)),
	}
	m.Faulty = wire.ReadHeader(r.Header, &m.Info)
	return m
}
