package outbox

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

//go:embed inbox.sql
var inboxStatements string

// inboxEntry is the id of a message from a foreign system, and the inboxSum of its content.
type inboxEntry struct {
	ID  saga.ID
	Sum int64
}

// inboxID returns the id of a message of source in this database: its own id if that is a UUID in canonical text,
// otherwise a UUIDv8 computed from both texts. The SQL function inbox_id computes the same.
func inboxID(source, id string) saga.ID {
	if own, err := saga.ParseID(id); err == nil && !own.IsZero() && own.String() == id {
		return own
	}
	return digestID(source + "\n" + id)
}

// digestID returns a UUIDv8 computed from a text.
func digestID(text string) saga.ID {
	sum := sha256.Sum256([]byte(text))
	id := saga.ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// inboxSum returns a digest of a message in 8 bytes.
func inboxSum(kind string, body []byte) int64 {
	h := sha256.New()
	h.Write([]byte(kind + "\n"))
	h.Write(body)
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

const mostSource = 255

// CheckSource returns an error if a text cannot name a source. A source has 1 to 255 bytes of UTF-8, without control
// characters.
func CheckSource(source string) error {
	if source == "" || len(source) > mostSource {
		return fmt.Errorf("a source of %d bytes, want 1 to %d", len(source), mostSource)
	}
	if !utf8.ValidString(source) {
		return fmt.Errorf("a source of %d bytes: %w", len(source), saga.ErrInvalidText)
	}
	for _, r := range source {
		if r < ' ' || r == 0x7f {
			return fmt.Errorf("source %.80q has a control character", source)
		}
	}
	return nil
}

// inboxClaim claims ids of one source within the transaction that writes the effects of their messages: the caller
// queues it into a pipeline, sends that, and, if unsure, sends sums too. It keeps the ring from rotating until the
// transaction ends. It is not safe for concurrent use.
type inboxClaim struct {
	store  *Store
	source string
	given  []inboxEntry
	first  []int // index of the first occurrence of each id, in the order of the ids
	heads  []int // for each of given, the index of the first with the same id
	stale  map[saga.ID]*int64
}

// newInboxClaim prepares a claim. An id may occur more than once: the first may be Fresh, the others are compared
// with it.
func (s *Store) newInboxClaim(source string, ids []inboxEntry) *inboxClaim {
	r := &inboxClaim{store: s, source: source, given: ids, heads: make([]int, len(ids))}
	order := make([]int, len(ids))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return ids[a].ID.Compare(ids[b].ID) })
	for _, n := range order {
		if last := len(r.first) - 1; last >= 0 && ids[r.first[last]].ID == ids[n].ID {
			r.heads[n] = r.first[last]
			continue
		}
		r.first, r.heads[n] = append(r.first, n), n
	}
	return r
}

// queue queues two statements, or nothing if there are no ids. The second may wait for transactions that claim the
// same ids: no earlier statement of the transaction may have changed or deleted a row. The transaction must be read
// committed, and the connection prepared by pg.RegisterArrays.
func (r *inboxClaim) queue(b *pgx.Batch) {
	if len(r.given) == 0 {
		return
	}
	ids, sums := pg.UUIDs(), pg.BigInts()
	for _, n := range r.first {
		ids.UUID(r.given[n].ID)
		sums.BigInt(r.given[n].Sum)
	}
	b.Queue(r.store.inbox.Get("lock_ring"))
	b.Queue(r.store.inbox.Get("claim_received"), r.source, ids, sums).QueryRow(r.collect)
}

// collect reads which ids are fresh; NULL means all of them.
func (r *inboxClaim) collect(row pgx.Row) error {
	var fresh [][16]byte
	if err := row.Scan(&fresh); err != nil || fresh == nil {
		return err
	}
	r.stale = make(map[saga.ID]*int64, len(r.first)-len(fresh))
	for _, n := range r.first {
		r.stale[r.given[n].ID] = nil
	}
	for _, id := range fresh {
		delete(r.stale, id)
	}
	return nil
}

// unsure reports whether some ids were recorded before, so that sums must be sent before outcome is called.
func (r *inboxClaim) unsure() bool { return len(r.stale) > 0 }

// sums queues the statement that reads the recorded digests of ids that were recorded before.
func (r *inboxClaim) sums(b *pgx.Batch) {
	ids := pg.UUIDs()
	for id := range r.stale {
		ids.UUID(id)
	}
	b.Queue(r.store.inbox.Get("received_sums"), r.source, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			row := pg.CurrentRow(rows)
			if row.Null(1) {
				continue
			}
			sum := row.Int(1)
			r.stale[row.UUID(0)] = &sum
		}
		return rows.Err()
	})
}

// outcome returns the state of the i-th id, after all statements were sent. If no digest was recorded for an id,
// every message with it is a Duplicate.
func (r *inboxClaim) outcome(i int) dedup.Outcome {
	g, head := r.given[i], r.heads[i]
	known, old := r.stale[g.ID]
	switch {
	case !old && head == i:
		return dedup.Fresh
	case !old:
		known = &r.given[head].Sum
	}
	if known == nil || *known == g.Sum {
		return dedup.Duplicate
	}
	return dedup.Conflict
}

// conflictID returns the id that records a message whose own id belongs to a different message, so that it is also
// handled once.
func conflictID(source string, g inboxEntry) saga.ID {
	return digestID(fmt.Sprintf("%s\nconflict\n%s\n%d", source, g.ID, g.Sum))
}

// InboxTx records one id in the caller's transaction, and reports whether it is new. An empty id is an error.
func (s *Store) InboxTx(ctx context.Context, tx pgx.Tx, source, id string) (fresh bool, err error) {
	if err := CheckSource(source); err != nil {
		return false, err
	}
	if id == "" {
		return false, errNoID
	}
	err = tx.QueryRow(ctx, s.inbox.Get("received"), source, id).Scan(&fresh)
	return fresh, err
}

var errNoID = errors.New("the id is empty: give each message its own id")
