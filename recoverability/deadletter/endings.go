package deadletter

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Endings returns the dead letters of these messages without headers and bodies, and the records of those that were
// discarded, 1,000 each at most, in the order of their numbers. The records have no index of ids, so it may read all of
// them, or those since the oldest of the messages was made.
func (s *Store) Endings(
	ctx context.Context, q Queryer, ids ...saga.ID,
) (letters []Letter, discarded []Discarded, err error) {
	of := make([][16]byte, len(ids))
	since := pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	for n, id := range ids {
		of[n] = id
		if made := madeAt(id); made.IsZero() {
			since = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
		} else if since.InfinityModifier == pgtype.Infinity ||
			since.InfinityModifier == pgtype.Finite && made.Before(since.Time) {
			since = pgtype.Timestamptz{Time: made, Valid: true}
		}
	}
	letters, err = collect(ctx, q, listing{"dead letters of messages", s.sql.Get("letters_of")},
		func(row pgx.CollectableRow) (Letter, error) { return scanLetter(row) }, pg.Planned, of)
	if err != nil {
		return nil, nil, err
	}
	discarded, err = collect(ctx, q, listing{"discarded messages by their ids", s.sql.Get("discarded_of")},
		scanDiscarded, pg.Planned, of, since)
	return letters, discarded, err
}

// skew is how far the clock of a process that makes ids may be ahead of the database's.
const skew = time.Hour

// madeAt is a time before the database's at which an id of version 7 was made, zero for another id.
func madeAt(id saga.ID) time.Time {
	if id[6]>>4 != 7 {
		return time.Time{}
	}
	var n int64
	for _, b := range id[:6] {
		n = n<<8 | int64(b)
	}
	return time.UnixMilli(n).Add(-skew)
}
