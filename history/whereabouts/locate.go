package whereabouts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// queued is a message in a queue, or a parked one.
type queued struct {
	info      history.Message
	queue     *queue.Queue
	due, now  time.Time
	attempt   int // failed attempts
	lastError string
	wasDue    *time.Time
	cancelled string
	lane      *string
	inHand    bool    // a transaction has locked its row
	holder    saga.ID // the session that has claimed it, or its lane
	until     time.Time
	before    int64
}

// queuesAtOnce is the number of queues that are read in one piece. A piece locks the table and the index of each
// until it ends, and Postgres has room for some thousands of locks.
const queuesAtOnce = 100

// locate finds messages in queues. For each it counts the messages before it, up to most.
func (s *snapshot) locate(ctx context.Context, messages []*Message, most int64) (found []queued, err error) {
	looks, err := s.sought(ctx, messages)
	if err != nil {
		return nil, err
	}
	pipeline := s.pieces(looks, func(pipeline *pgx.Batch, l *look) {
		add := func(rows pgx.Rows) error {
			here, err := pgx.CollectRows(rows,
				func(row pgx.CollectableRow) (queued, error) { return scan(row, l.queue) })
			found = append(found, here...)
			return err
		}
		if len(l.due) > 0 {
			pipeline.Queue(l.queue.SQL("locate"), l.due, l.here, most, len(messages) == 1).Query(add)
		}
		pipeline.Queue(l.queue.SQL("locate_parked"), l.ids, most, l.queue.ID, s.mostParked()).Query(add)
	})
	if err := s.tx.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, fmt.Errorf("search the queues: %w", err)
	}
	return found, nil
}

// pieces calls queue for each of the looks, and unlocks the tables between pieces.
func (s *snapshot) pieces(looks []look, queue func(*pgx.Batch, *look)) *pgx.Batch {
	pipeline := &pgx.Batch{}
	pipeline.Queue(s.sql.Get("begin_piece"))
	for at := range looks {
		queue(pipeline, &looks[at])
		if (at+1)%queuesAtOnce == 0 || at == len(looks)-1 {
			pipeline.Queue(s.sql.Get("unlock_piece"))
		}
	}
	return pipeline
}

func scan(row pgx.CollectableRow, q *queue.Queue) (m queued, err error) {
	var (
		header               []byte
		lastError, cancelled *string
		holder               *[16]byte
		until                *time.Time
	)
	i := saga.Info{}
	err = row.Scan((*[16]byte)(&i.ID), &m.due, &i.Sent, &m.attempt, &i.Kind, &header, &lastError, &m.now, &m.wasDue,
		&cancelled, &m.lane, &m.inHand, &holder, &until, &m.before)
	if err != nil {
		return m, err
	}
	if lastError != nil {
		m.lastError = *lastError
	}
	if cancelled != nil {
		m.cancelled = *cancelled
	}
	if holder != nil {
		m.holder = *holder
	}
	if until != nil {
		m.until = until.UTC()
	}
	if m.due = m.due.UTC(); m.wasDue != nil {
		i.Due = m.wasDue.UTC()
	} else {
		i.Due = m.due
	}
	_ = wire.ReadHeader(header, &i) // a faulty header is read as far as possible
	m.queue, m.info = q, infoOf(&i)
	return m, nil
}

// infoOf returns the data of a message in the form of the history.
func infoOf(i *saga.Info) history.Message {
	m := history.Message{
		ID: i.ID, Conversation: i.ConversationID, RelatedTo: i.RelatedTo, Kind: i.Kind, Intent: i.Intent, From: i.From,
		Sent: i.Sent.UTC(), Due: i.Due,
	}
	if m.Conversation.IsZero() {
		m.Conversation = i.ID
	}
	if i.Firing != nil {
		m.Manifest, m.Run = i.Firing.Manifest, i.Firing.Run
	}
	return m
}

// place returns the place of a queued message. hinder adds the state of the endpoint later.
func (m *queued) place() Place {
	p := Place{
		Endpoint: m.queue.Endpoint, Relay: m.queue.Relay, Attempt: m.attempt + 1, At: m.due, Before: m.before,
		Error: m.lastError, Reason: m.cancelled, In: m.due.Sub(m.now),
	}
	switch {
	case m.lane != nil:
		if p.State, p.Key, p.Until, p.In = Parked, *m.lane, m.until, m.until.Sub(m.now); !m.holder.IsZero() {
			p.Process = "an unknown process"
		}
	case m.inHand:
		p.State, p.In = InHand, 0
	case !m.holder.IsZero():
		p.State, p.Until = InHand, m.until
		if m.wasDue != nil {
			p.At = m.wasDue.UTC()
		}
	case !m.due.After(m.now):
		p.State, p.In = Waiting, 0
	case m.attempt > 0:
		p.State = Retrying
	default:
		p.State = Delayed
	}
	return p
}

// hinder completes the places of messages. For a waiting message it adds the reason of its wait: a pause, or the lack
// of a process that runs the endpoint. For a message in hand it adds the process.
func (r *Reader) hinder(ctx context.Context, tx pgx.Tx, found []queued, places []Place) error {
	if len(found) == 0 {
		return nil
	}
	set, err := r.settings.List(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the settings of endpoints: %w", err)
	}
	var numbers []int
	var sessions []saga.ID
	for n := range found {
		numbers = append(numbers, found[n].queue.ID)
		if !found[n].holder.IsZero() {
			sessions = append(sessions, found[n].holder)
		}
	}
	processes, err := membership.Processes(ctx, tx, r.schema, numbers, sessions)
	if err != nil {
		return err
	}
	for n := range found {
		m, p := &found[n], &places[n]
		for _, s := range set {
			if s.Paused && s.Endpoint == m.queue.Endpoint { // a pause of the distributor stops no partition
				p.Pause = Pause{s.PausedAt, s.PausedBy, s.Reason}
			}
		}
		p.Idle = true
		for _, s := range processes {
			if s.Lives && slices.Contains(s.Queues, m.queue.ID) {
				p.Idle = false
			}
			if s.Session == m.holder {
				p.Process, p.Lost = fmt.Sprintf("%s (process %d)", s.Host, s.PID), !s.Lives
			}
		}
	}
	return nil
}

// baseOf returns the endpoint that the given endpoint is a partition of, or the endpoint itself.
func baseOf(known *queue.Routes, endpoint string) string {
	return cmp.Or(known.Bases[endpoint], endpoint)
}
