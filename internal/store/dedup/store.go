package dedup

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// ErrConflict means that the id of the message was used before, with other content. The first message is kept.
var ErrConflict = errors.New("the message id was used before with different content")

// Store keeps the ids of one schema. It holds no state and is safe for concurrent use; the caller runs the
// transactions.
type Store struct{ sql pg.Statements }

// New renders the statements for schema.
func New(schema pg.Schema) *Store { return &Store{pg.Load(statements, schema)} }

// Sum returns a hash of the content of a message, in 32 bytes. endpoint is the one the caller named, or "" if the
// kind routes the message. The SQL function send computes the same.
func Sum(kind, endpoint string, body []byte) []byte {
	h := sha256.New()
	h.Write([]byte(endpoint + "\n" + kind + "\n"))
	h.Write(body)
	return h.Sum(nil)
}

// QueueForget releases ids that this transaction claimed, for messages that were not sent after all. They must have
// been Fresh: another transaction's id would be sent twice. It never waits.
func (s *Store) QueueForget(b *pgx.Batch, ids []saga.ID) {
	if len(ids) == 0 {
		return
	}
	text := make([]string, len(ids))
	for n, id := range ids {
		text[n] = id.String()
	}
	b.Queue(s.sql.Get("forget"), text)
}

// Prune deletes at most limit ids that are older than olderThan by the database's clock, and returns how many it
// deleted. If that is less than limit, no more can be deleted now. It skips locked rows.
func (s *Store) Prune(ctx context.Context, db execer, olderThan time.Duration, limit int) (int64, error) {
	// Planned on each call: a plan kept from the empty table would read the whole full one.
	tag, err := db.Exec(ctx, s.sql.Get("prune"), pg.Planned, olderThan.Seconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("prune message ids: %w", err)
	}
	return tag.RowsAffected(), nil
}

// execer is implemented by pgx's pools, connections and transactions.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}
