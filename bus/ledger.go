package bus

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// entry is a row of the crash ledger that was there before us.
type entry struct {
	position
	deaths  int
	alone   int      // of these, with nothing else in hand
	session *saga.ID // who had it in hand last; nil when that is settled
	solo    bool     // and had nothing else
}

// side runs statements of the ledger in a transaction of their own, on another connection than the batch's: what they
// write must be there when this process is not.
func (b *batch) side(ctx context.Context, queue func(*pgx.Batch)) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue(b.bus.sql.Get("open"))
	pipeline.Queue(b.bus.sql.Get("lazily"))
	queue(pipeline)
	return b.bus.pool.SendBatch(ctx, pipeline).Close()
}

// enterLedger says that this process has the messages in hand, and returns the entries of those that were in other hands.
func (b *batch) enterLedger(ctx context.Context) (found []*entry, err error) {
	due, id := b.keys()
	b.listed = true
	err = b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("enter_ledger"), b.queue.id, due, id, b.bus.session.id).Query(func(rows pgx.Rows) error {
			var err error
			found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*entry, error) {
				f := &entry{}
				err := row.Scan(&f.due, &f.id, &f.deaths, &f.alone, &f.session, &f.solo)
				f.due = f.due.UTC()
				return f, err
			})
			return err
		})
	})
	return found, err
}

// chargeDeaths counts the deaths of the sessions that had the messages in hand. Rarely, one of them is alive: it lost its
// connection, and could not strike them out.
func (b *batch) chargeDeaths(ctx context.Context, found []*entry) error {
	var sessions []saga.ID
	for _, f := range found {
		if f.session != nil && *f.session != b.bus.session.id && !slices.Contains(sessions, *f.session) {
			sessions = append(sessions, *f.session)
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	dead, err := b.whoDied(ctx, sessions)
	if err != nil || len(dead) == 0 {
		return err
	}
	sessions = slices.DeleteFunc(sessions, func(id saga.ID) bool { return !dead[id] })
	due, id := b.keys()
	if err := b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("charge_deaths"), b.queue.id, due, id, uuidsOf(sessions))
	}); err != nil {
		return err
	}
	for _, f := range found {
		if f.session == nil || !dead[*f.session] {
			continue
		}
		if f.deaths++; f.solo {
			f.alone++
		}
		f.session, f.solo = nil, false
	}
	return nil
}

// whoDied asks again when a session seems to be alive whose messages came back: the connections of a dead process end
// one after another.
func (b *batch) whoDied(ctx context.Context, sessions []saga.ID) (dead map[saga.ID]bool, err error) {
	for n := range askAgain {
		if dead, err = b.bus.session.dead(ctx, sessions, true); err != nil || len(dead) == len(sessions) {
			return dead, err
		}
		if n+1 < askAgain && run.Sleep(ctx, askGap) != nil {
			break
		}
	}
	return dead, nil
}

// takeOver makes entries that were there before ours.
func (b *batch) takeOver(ctx context.Context, entries []*entry, solo bool) error {
	due, id := make([]time.Time, len(entries)), make([][16]byte, len(entries))
	for i, f := range entries {
		due[i], id[i] = f.due, f.id
	}
	return b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("take_over"), b.queue.id, due, id, b.bus.session.id, solo)
	})
}

// queueLedger strikes the messages out in the batch's own transaction.
func (b *batch) queueLedger(pipeline *pgx.Batch) {
	if !b.listed {
		return
	}
	due, id := pg.Timestamps(), pg.UUIDs()
	for _, m := range b.messages {
		due.Time(m.due)
		id.UUID(m.id)
	}
	pipeline.Queue(b.bus.sql.Get("strike_out"), b.queue.id, due, id)
}

// withdraw strikes the messages out of a batch that is rolled back, which is no death. When that cannot be done, others
// see that this process lives.
func (b *batch) withdraw(ctx context.Context) {
	if !b.listed {
		return
	}
	b.listed = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	due, id := b.keys()
	if err := b.side(ctx, func(pipeline *pgx.Batch) {
		pipeline.Queue(b.bus.sql.Get("withdraw"), b.queue.id, due, id, b.bus.session.id)
		pipeline.Queue(b.bus.sql.Get("put_down"), b.queue.id, due, id, b.bus.session.id)
	}); err != nil {
		b.bus.log.Debug("edda: strike out of the crash ledger", "endpoint", b.name, "error", err)
	}
}

// keys are for connections that do not know our own arrays.
func (b *batch) keys() (due []time.Time, id [][16]byte) {
	due, id = make([]time.Time, len(b.messages)), make([][16]byte, len(b.messages))
	for i, m := range b.messages {
		due[i], id[i] = m.due, m.id
	}
	return due, id
}

// pruneSessions and pruneLedger delete, a piece at a time, what tells nothing any more.
func (s *session) pruneSessions(ctx context.Context) (int64, error) {
	tag, err := s.bus.pool.Exec(ctx, s.bus.sql.Get("prune_sessions"), sessionKept.Microseconds(), cleanRows)
	return tag.RowsAffected(), err
}

func (s *session) pruneLedger(ctx context.Context, q *queue) (int64, error) {
	tag, err := s.bus.pool.Exec(ctx, q.pruneLedger, q.id, cleanRows)
	return tag.RowsAffected(), err
}
