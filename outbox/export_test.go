package outbox

import (
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/jackc/pgx/v5"
)

// SQL returns one of the rendered statements, for the tests of their plans.
func (s *Store) SQL(name string) string {
	if sql, ok := s.inbox[name]; ok {
		return sql
	}
	return s.kept.Get(name)
}

// The operations of Ingest on the inbox, for its tests.
type (
	InboxClaim = inboxClaim
	InboxEntry = inboxEntry
)

var (
	ConflictID = conflictID
	InboxID    = inboxID
	InboxSum   = inboxSum
)

func (s *Store) NewInboxClaim(source string, ids []InboxEntry) *InboxClaim {
	return s.newInboxClaim(source, ids)
}

func (r *inboxClaim) Queue(b *pgx.Batch)          { r.queue(b) }
func (r *inboxClaim) Unsure() bool                { return r.unsure() }
func (r *inboxClaim) Sums(b *pgx.Batch)           { r.sums(b) }
func (r *inboxClaim) Outcome(i int) dedup.Outcome { return r.outcome(i) }
