package whereabouts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Near returns a reader that does not read queues from one end to the other. Of each queue it reads the 2,000
// messages that are due first and the 2,000 that are due next. It also searches the probable due times of a message:
// when it was sent, when its timeout ends, and after its last failure. A place whose Unread is set names a queue that
// was not searched completely. So the cost does not depend on the number of waiting messages, and the result is
// complete if queues are short. For a single message it also reads whole indexes, if all queues together have at most
// about 400,000 messages.
func (r *Reader) Near() *Reader {
	near := *r
	near.near = true
	return &near
}

// The limits of Near.
const (
	mostIndex  = 16 << 20         // bytes of the indexes of all queues that are read for one message
	headRead   = 2_000            // messages at each end of a queue
	spanRead   = 100_000          // messages of a span of time
	spansRead  = 20               // spans of a queue
	earlySpan  = time.Second      // the clock that makes ids may be ahead of the database's
	lateSpan   = 4 * time.Second  // between the making of an id and the commit of its message
	failedSpan = 10 * time.Minute // after a failure
)

// look is the search in one queue.
type look struct {
	queue *queue.Queue
	ids   [][16]byte
	spans spans

	due  []time.Time // with here: due times and ids of found messages
	here [][16]byte
	more bool // the queue has more messages than were read
}

// span is a period of due times.
type span struct{ since, until time.Time }

// spans are in the order of time after they were merged.
type spans []span

// merged returns the spans without their overlaps, and only the last spansRead of them.
func (s spans) merged() (since, until []time.Time) {
	slices.SortFunc(s, func(a, b span) int { return a.since.Compare(b.since) })
	for _, t := range s {
		if last := len(until) - 1; last >= 0 && !t.since.After(until[last]) {
			if t.until.After(until[last]) {
				until[last] = t.until
			}
			continue
		}
		since, until = append(since, t.since), append(until, t.until)
	}
	from := max(0, len(since)-spansRead)
	return since[from:], until[from:]
}

func (r *Reader) mostParked() int {
	if r.near {
		return headRead
	}
	return math.MaxInt32
}

// sought searches for messages in queues.
func (s *snapshot) sought(ctx context.Context, messages []*Message) ([]look, error) {
	looks := s.looks(messages)
	settings := "look"
	if s.near {
		settings = "look_near"
	}
	if _, err := s.tx.Exec(ctx, s.sql.Get(settings)); err != nil {
		return nil, fmt.Errorf("prepare the search of the queues: %w", err)
	}
	read := whole
	if s.near {
		read = ends
	}
	if err := s.read(ctx, looks, read); err != nil || !s.near {
		return looks, err
	}
	if err := s.readOn(ctx, looks, len(messages)); err != nil {
		return nil, err
	}
	for at := range looks {
		if l := &looks[at]; l.more {
			for _, id := range l.ids {
				s.unread[id] = l.queue.Endpoint
			}
		}
	}
	return looks, nil
}

// read sends one statement for each look, which ask queues, and scans the results.
func (s *snapshot) read(ctx context.Context, looks []look, ask func(*pgx.Batch, *look) *pgx.QueuedQuery) error {
	pipeline := s.pieces(looks, func(pipeline *pgx.Batch, l *look) { ask(pipeline, l).Query(l.scan) })
	if err := s.tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return fmt.Errorf("search the queues: %w", err)
	}
	return nil
}

func whole(pipeline *pgx.Batch, l *look) *pgx.QueuedQuery {
	return pipeline.Queue(l.queue.SQL("sought"), l.ids)
}

func ends(pipeline *pgx.Batch, l *look) *pgx.QueuedQuery {
	since, until := l.spans.merged()
	return pipeline.Queue(l.queue.SQL("near"), l.ids, since, until, spanRead, headRead, l.queue.ID)
}

// readOn reads the indexes of queues to their end for a single message that was not found, if they are not too large.
func (s *snapshot) readOn(ctx context.Context, looks []look, messages int) error {
	var tables []string
	for at := range looks {
		if len(looks[at].due) > 0 {
			return nil
		}
		if looks[at].more {
			tables = append(tables, looks[at].queue.Table)
		}
	}
	if messages > 1 || len(tables) == 0 {
		return nil
	}
	var bytes int64
	if err := s.tx.QueryRow(ctx, s.sql.Get("index_bytes"), tables).Scan(&bytes); err != nil {
		return fmt.Errorf("read the sizes of the queues: %w", err)
	}
	if bytes > mostIndex {
		return nil
	}
	for at := range looks {
		looks[at].more = false
	}
	return s.read(ctx, looks, whole)
}

func (l *look) scan(rows pgx.Rows) error {
	for rows.Next() {
		var (
			due *time.Time
			id  *[16]byte
		)
		if err := rows.Scan(&due, &id, &l.more); err != nil {
			return err
		}
		if due != nil && id != nil {
			l.due, l.here = append(l.due, *due), append(l.here, *id)
		}
	}
	return rows.Err()
}

// looks assigns messages to the queues that must be searched for them.
func (s *snapshot) looks(messages []*Message) []look {
	all := make([]look, 0, len(s.known.ByID))
	at := map[*queue.Queue]int{}
	for _, number := range slices.Sorted(maps.Keys(s.known.ByID)) {
		q := s.known.ByID[number]
		at[q] = len(all)
		all = append(all, look{queue: q})
	}
	for _, m := range messages {
		in := slices.Collect(maps.Keys(at))
		if s.near && len(messages) > 1 {
			in = s.queuesOf(m)
		}
		for _, q := range in {
			l := &all[at[q]]
			l.ids = append(l.ids, m.ID)
			if s.near {
				l.spans.of(m)
			}
		}
	}
	return slices.DeleteFunc(all, func(l look) bool { return len(l.ids) == 0 })
}

// queuesOf returns the queues that may contain one of many messages: no queue if it was handled, and all queues if
// its destination is unknown, or if an operator may have sent it elsewhere.
func (s *snapshot) queuesOf(m *Message) (in []*queue.Queue) {
	all := slices.Collect(maps.Values(s.known.ByID))
	to := m.Info.To
	if n := len(m.Attempts); n > 0 {
		last := &m.Attempts[n-1]
		switch {
		case m.Info.Intent == saga.Event || last.Fate == history.Died:
			return all
		case last.Fate == history.Handled:
			return nil
		}
		to = last.Endpoint
	}
	if to != "" {
		to = baseOf(s.known, to)
		if q := s.known.Endpoints[to]; q != nil {
			return append(s.known.Partitions(to, 0), q)
		}
	}
	for _, q := range s.known.Kinds[m.Info.Kind] {
		in = append(append(in, q), s.known.Partitions(q.Endpoint, 0)...)
	}
	if len(in) == 0 {
		return all
	}
	return in
}

// of adds the periods of the known and probable due times of a message.
func (s *spans) of(m *Message) {
	if due := m.Info.Due; !due.IsZero() {
		*s = append(*s, span{due.Add(-time.Second), due.Add(time.Second)})
	}
	if n := len(m.Attempts); n > 0 && m.Attempts[n-1].Fate == history.Retried {
		at := m.Attempts[n-1].At
		*s = append(*s, span{at, at.Add(failedSpan)})
		return
	}
	if m.ID[6]>>4 == 7 {
		made := began(m.ID)
		*s = append(*s, span{made.Add(-earlySpan), made.Add(lateSpan)})
	}
}
