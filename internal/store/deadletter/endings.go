package deadletter

import (
	"context"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// Endings returns the dead letters of these messages without headers and bodies, and the records of the messages that
// were discarded, at most 1,000 each, in the order of their numbers.
func (s *Store) Endings(
	ctx context.Context, q Queryer, ids ...saga.ID,
) (letters []recoverability.Letter, discarded []recoverability.Discarded, err error) {
	of := make([][16]byte, len(ids))
	for n, id := range ids {
		of[n] = id
	}
	letters, err = collect(ctx, q, listing{"dead letters of messages", s.sql.Get("letters_of")},
		scanOnly, pg.Planned, of)
	if err != nil {
		return nil, nil, err
	}
	discarded, err = collect(ctx, q, listing{"discarded messages by their ids", s.sql.Get("discarded_of")},
		scanDiscarded, pg.Planned, of)
	return letters, discarded, err
}
