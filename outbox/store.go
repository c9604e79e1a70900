package outbox

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed statements.sql
var statements string

// Store keeps the ids of one schema. It holds no state: it is safe for concurrent use, and transactions
// are the caller's.
type Store struct {
	sql   pg.Statements
	inbox pg.Statements
	ring  pg.Statements
	kept  pg.Statements
}

// New renders the statements for schema.
func New(schema pg.Schema) (*Store, error) {
	s := &Store{}
	for _, file := range []struct {
		text string
		into *pg.Statements
	}{{statements, &s.sql}, {inboxStatements, &s.inbox}, {ringStatements, &s.ring}, {keptStatements, &s.kept}} {
		sql, err := pg.Load(file.text, schema)
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		*file.into = sql
	}
	return s, nil
}

// Sum is the content of a message in 32 bytes. endpoint is the one the caller named, "" when the kind
// routes the message. The SQL function send computes the same.
func Sum(kind, endpoint string, body []byte) []byte {
	h := sha256.New()
	h.Write([]byte(endpoint + "\n" + kind + "\n"))
	h.Write(body)
	return h.Sum(nil)
}

// QueueForget gives up ids that this transaction claimed, for messages that were not sent after all. They
// must have been Fresh: another transaction's id would be sent twice. It never waits.
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

// Prune deletes at most limit ids that are older than olderThan by the database's clock, and tells how many it
// deleted. Fewer than limit means that no more are to be had now. Rows that somebody holds are passed over.
func (s *Store) Prune(ctx context.Context, db Execer, olderThan time.Duration, limit int) (int64, error) {
	// Planned on each call: a plan kept from the empty table would read all of the full one.
	tag, err := db.Exec(ctx, s.sql.Get("prune"), pg.Planned, olderThan.Seconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("prune message ids: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Execer is met by pgx's pools, connections and transactions.
type Execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}
