package deadletter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5"
)

// QueueLetters queues one insert of letters, or nothing if there are no letters. The insert never waits for a lock.
// The connection must have been prepared by pg.RegisterArrays.
func (s *Store) QueueLetters(b *pgx.Batch, letters []recoverability.Letter) {
	if len(letters) == 0 {
		return
	}
	endpoint, id, kind, header, body := pg.Texts(), pg.UUIDs(), pg.Texts(), pg.Byteas(), pg.Byteas()
	attempts, conflicts, reason, text, group := pg.Ints(), pg.Ints(), pg.Texts(), pg.Texts(), pg.Texts()
	sent, failed := pg.Timestamps(), pg.Timestamps()
	for n := range letters {
		l := &letters[n]
		endpoint.Text(Storable(l.Endpoint))
		id.UUID(l.MessageID)
		kind.Text(Storable(l.Kind))
		header.Bytes(l.Header)
		body.Bytes(l.Body)
		attempts.Int(min(l.Attempts, math.MaxInt32))
		conflicts.Int(min(l.Conflicts, math.MaxInt32))
		reason.Text(Storable(l.Reason))
		text.Text(Storable(l.Error))
		sent.Time(storableTime(l.Sent))
		failed.Time(storableTime(l.FirstFailed))
		group.Text(GroupOf(l))
	}
	b.Queue(s.sql.Get("insert"), endpoint, id, kind, header, body, attempts, conflicts, reason, text, sent, failed,
		group)
}

// QueueDiscarded queues one insert of discarded messages, or nothing if there are no messages. The insert never waits
// for a lock. The connection must have been prepared by pg.RegisterArrays.
func (s *Store) QueueDiscarded(b *pgx.Batch, discarded []recoverability.Discarded) {
	if len(discarded) == 0 {
		return
	}
	endpoint, id, kind := pg.Texts(), pg.UUIDs(), pg.Texts()
	name, key, reason := pg.Texts(), pg.Texts(), pg.Texts()
	for n := range discarded {
		d := &discarded[n]
		endpoint.Text(Storable(d.Endpoint))
		id.UUID(d.MessageID)
		kind.Text(Storable(d.Kind))
		name.Text(Storable(d.Saga))
		key.Text(Storable(d.Key))
		reason.Text(Storable(d.Reason))
	}
	b.Queue(s.sql.Get("insert_discarded"), endpoint, id, kind, name, key, reason)
}

// storableTime returns the zero time, which is stored as unknown, for a time that Postgres may refuse.
func storableTime(t time.Time) time.Time {
	if year := t.Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return t
}

// AddDiscarded records one discarded message in tx. The connection need not be prepared.
func (s *Store) AddDiscarded(ctx context.Context, tx pgx.Tx, d recoverability.Discarded) error {
	_, err := tx.Exec(ctx, s.sql.Get("insert_one_discarded"), Storable(d.Endpoint), [16]byte(d.MessageID),
		Storable(d.Kind),
		Storable(d.Saga), Storable(d.Key), Storable(d.Reason))
	if err != nil {
		return fmt.Errorf("record a discarded message: %w", err)
	}
	return nil
}
