package dedup

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Outcome is the result of a claim for one id.
type Outcome uint8

const (
	Fresh     Outcome = iota // claimed by this transaction: send the message
	Duplicate                // an equal message was sent before: send nothing
	Conflict                 // the id belongs to a message with other content
)

func (o Outcome) String() string { return [...]string{"fresh", "duplicate", "conflict"}[o] }

// Given is an id that a caller chose, and the Sum of its message.
type Given struct {
	ID  saga.ID
	Sum []byte
}

// Claim claims ids within the transaction that sends their messages: the caller calls Queue for a pipeline, sends it,
// and then calls Outcome. Not safe for concurrent use.
type Claim struct {
	store *Store
	given []Given
	fresh map[saga.ID]int // ids that this claim inserted, with their index in given
	known map[saga.ID][]byte
}

// NewClaim prepares a claim. An id may occur more than once: the first may be Fresh, the others are compared with it.
func (s *Store) NewClaim(ids []Given) *Claim {
	return &Claim{store: s, given: ids, fresh: map[saga.ID]int{}, known: map[saga.ID][]byte{}}
}

// Queue queues two statements, or nothing if there are no ids. The first may wait for transactions that claim the
// same ids: the transaction must not have changed or deleted a row before it.
func (c *Claim) Queue(b *pgx.Batch) {
	if len(c.given) == 0 {
		return
	}
	first := c.firstOfEach()
	ids, sums := make([]string, len(first)), make([][]byte, len(first))
	for n, at := range first {
		ids[n], sums[n] = c.given[at].ID.String(), c.given[at].Sum
	}
	b.Queue(c.store.sql.Get("claim"), ids, sums).Query(func(rows pgx.Rows) error {
		return c.collectFresh(rows, first)
	})
	b.Queue(c.store.sql.Get("sums"), ids).Query(c.collectKnown)
}

// firstOfEach returns the index of each id's first occurrence, in the order of the ids.
func (c *Claim) firstOfEach() []int {
	order := make([]int, len(c.given))
	for n := range order {
		order[n] = n
	}
	compare := func(a, b int) int { return c.given[a].ID.Compare(c.given[b].ID) }
	slices.SortStableFunc(order, compare)
	return slices.CompactFunc(order, func(a, b int) bool { return compare(a, b) == 0 })
}

func (c *Claim) collectFresh(rows pgx.Rows, first []int) error {
	at := make(map[saga.ID]int, len(first))
	for _, n := range first {
		at[c.given[n].ID] = n
	}
	for rows.Next() {
		id, err := scanID(rows)
		if err != nil {
			return err
		}
		c.fresh[id] = at[id]
	}
	return rows.Err()
}

func (c *Claim) collectKnown(rows pgx.Rows) error {
	for rows.Next() {
		var text string
		id, err := scanID(rows, &text)
		if err != nil {
			return err
		}
		if c.known[id], err = hex.DecodeString(text); err != nil {
			return fmt.Errorf("read the digest of message %s: %w", id, err)
		}
	}
	return rows.Err()
}

// scanID reads the id of a row as text: the owner of the connection may have registered a type of its own for uuid.
func scanID(rows pgx.Rows, more ...any) (saga.ID, error) {
	var text string
	if err := rows.Scan(append([]any{&text}, more...)...); err != nil {
		return saga.ID{}, err
	}
	return saga.ParseID(text)
}

// Outcome returns, after the pipeline was sent, the result for the i-th id. If an id existed at the insert and was
// pruned before its sum was read, the result is Conflict: the caller tries again, and nothing is lost.
func (c *Claim) Outcome(i int) Outcome {
	g := c.given[i]
	if at, ok := c.fresh[g.ID]; ok && at == i {
		return Fresh
	}
	if sum, ok := c.known[g.ID]; ok && bytes.Equal(sum, g.Sum) {
		return Duplicate
	}
	return Conflict
}
