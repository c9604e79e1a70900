package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// FoundMessage has all stored data about a message in a queue.
type FoundMessage struct {
	QueuedMessage
	Endpoint     string
	Lane         string    // its key, if it is parked behind an earlier message of this key in an ordered endpoint
	Claims       int       // by leased workers; 0 in a transactional endpoint
	Holder       saga.ID   // the session that has claimed it, or claimed it last; zero without a claim
	WasDue       time.Time // when it was due before it was claimed; zero without a claim
	Cancelled    string    // why its handler should stop
	Crashes      int       // processes of a leased endpoint that crashed while they handled it
	CrashesAlone int       // of Crashes: processes that handled nothing else
}

// showQueues is the number of queues that one round trip reads. Until its end it locks the table and index of each.
const showQueues = 100

// Show finds a message in all queues, by its id: an event has a copy in each queue that it was published to.
// bodyBytes is the length of the body to read; 0 is 4 KiB, at most 64 KiB.
//
// Queues have no index of ids, so Show reads them all: about a second for ten million messages. It locks nothing and
// waits for nothing. It returns ErrNotFound if no queue has the message: it was handled, is a dead letter or unknown.
func (m Messages) Show(ctx context.Context, id saga.ID, bodyBytes int) ([]FoundMessage, error) {
	found, err := m.show(ctx, id, min(cmp.Or(max(bodyBytes, 0), peekBytes), mostPeekBytes))
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("show message %s: %w", id, pgerr.Explain(err))
	}
	return found, nil
}

func (m Messages) show(ctx context.Context, id saga.ID, bodyBytes int) (found []FoundMessage, err error) {
	known, err := m.o.routes.Reload(ctx, m.o.pool)
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(known.ByID)), showQueues) {
		pipeline := &pgx.Batch{}
		for _, number := range some {
			q := known.ByID[number]
			pipeline.Queue(q.SQL("find"), [16]byte(id), bodyBytes, number).Query(func(rows pgx.Rows) error {
				reader := queue.Reader{Arena: new(queue.Arena)}
				for rows.Next() {
					found = append(found, foundOf(&reader, pg.CurrentRow(rows), q.Endpoint))
				}
				return rows.Err()
			})
		}
		if err := m.o.pool.SendBatch(ctx, pipeline).Close(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func foundOf(reader *queue.Reader, row pg.Row, endpoint string) FoundMessage {
	const more = columnLastError + 1
	m := FoundMessage{
		QueuedMessage: queuedOf(reader, row), Endpoint: endpoint, Lane: row.Text(more), Claims: int(row.Int(more + 1)),
		WasDue: row.Time(more + 3), Cancelled: row.Text(more + 4), Crashes: int(row.Int(more + 5)),
		CrashesAlone: int(row.Int(more + 6)),
	}
	if !row.Null(more + 2) {
		m.Holder = row.UUID(more + 2)
	}
	return m
}
