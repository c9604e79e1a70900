package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

//go:embed kept.sql
var keptStatements string

// Kept is a copy of a relayed message.
type Kept struct {
	Endpoint string // the name of the relay and of its queue
	ID       saga.ID
	Kind     string
	Header   []byte
	Body     []byte
	Sent     time.Time
	Relayed  time.Time // by the database's clock; QueueKeep ignores it
	Size     int       // of the body, if Body was not read
}

// QueueKeep queues one insert of copies, in order, or nothing if there are no copies. It never waits. The connection
// must have been prepared by pg.RegisterArrays. Copies stay for the time that is set for the ring of the outbox.
func (s *Store) QueueKeep(b *pgx.Batch, rows []Kept) {
	if len(rows) == 0 {
		return
	}
	endpoint, id, sent, kind, header, body := pg.Texts(), pg.UUIDs(), pg.Timestamps(), pg.Texts(), pg.Byteas(),
		pg.Byteas()
	for n := range rows {
		k := &rows[n]
		endpoint.Text(k.Endpoint)
		id.UUID(k.ID)
		sent.Time(k.Sent)
		kind.Text(k.Kind)
		header.Bytes(k.Header)
		body.Bytes(k.Body)
	}
	b.Queue(s.kept.Get("keep"), endpoint, id, sent, kind, header, body)
}

// KeptPlace is a place in the order of a relay's messages, by the time of relaying. The zero place is before the first.
type KeptPlace struct {
	Relayed time.Time
	ID      saga.ID
}

// KeptFilter selects copies.
type KeptFilter struct {
	Endpoint string    // required
	Kind     string    // "" is every kind
	Since    time.Time // relayed at this time or later; zero is no bound
	Until    time.Time // relayed before this time; zero is no bound
}

const (
	// MaxKept is the largest number of copies that one call reads.
	MaxKept    = 1000
	mostListed = 8 << 20 // bytes of headers
	mostShown  = 100
)

var errNoEndpoint = errors.New("the endpoint of the relay is missing")

// KeptPage is the result of ListKept.
type KeptPage struct {
	Found []Kept
	Next  KeptPlace // where to continue
	More  bool      // there may be more copies
}

// ListKept lists copies without their bodies, in the order of their relaying, after a place. It reads at most limit
// copies, 1 to MaxKept, and fewer if their headers are large.
func (s *Store) ListKept(ctx context.Context, db Queryer, f KeptFilter, after KeptPlace, limit int) (KeptPage, error) {
	if f.Endpoint == "" {
		return KeptPage{}, fmt.Errorf("list relayed messages: %w", errNoEndpoint)
	}
	if limit < 1 || limit > MaxKept {
		return KeptPage{}, fmt.Errorf("list relayed messages: limit is %d, want 1 to %d", limit, MaxKept)
	}
	if after.Relayed.Before(f.Since) { // every copy of that time is after the place a microsecond before
		after = KeptPlace{Relayed: f.Since.Add(-time.Microsecond), ID: lastID}
	}
	rows, err := db.Query(ctx, s.kept.Get("list_kept"), f.Endpoint, bound(after.Relayed, pgtype.NegativeInfinity),
		[16]byte(after.ID),
		bound(f.Until, pgtype.Infinity), f.Kind, limit, mostListed)
	if err != nil {
		return KeptPage{}, fmt.Errorf("list relayed messages: %w", err)
	}
	page := KeptPage{Next: after}
	looked, wanted, there := 0, false, 0
	var k Kept
	var sent *time.Time
	_, err = pgx.ForEachRow(rows, []any{&k.Relayed, (*[16]byte)(&k.ID), &sent, &k.Kind, &k.Header, &k.Size, &wanted,
		&there}, func() error {
		looked++
		page.Next = KeptPlace{Relayed: k.Relayed, ID: k.ID}
		if wanted {
			one := k
			one.Endpoint, one.Header = f.Endpoint, append([]byte(nil), k.Header...)
			if sent != nil {
				one.Sent = *sent
			}
			page.Found = append(page.Found, one)
		}
		return nil
	})
	if err != nil {
		return KeptPage{}, fmt.Errorf("list relayed messages: %w", err)
	}
	page.More = looked == limit || looked < there
	return page, nil
}

var lastID = saga.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

func bound(t time.Time, otherwise pgtype.InfinityModifier) pgtype.Timestamptz {
	if t.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: otherwise, Valid: true}
	}
	return pgtype.Timestamptz{Time: t, Valid: true}
}

// KeptOf returns the copies of these messages without headers and bodies, the oldest first, at most 1,000.
func (s *Store) KeptOf(ctx context.Context, db Queryer, ids ...saga.ID) ([]Kept, error) {
	of := make([][16]byte, len(ids))
	for n, id := range ids {
		of[n] = id
	}
	rows, err := db.Query(ctx, s.kept.Get("kept_of"), pg.Planned, of, MaxKept)
	if err != nil {
		return nil, fmt.Errorf("look for copies of %d messages: %w", len(ids), err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Kept, err error) {
		err = row.Scan(&k.Endpoint, &k.Relayed, (*[16]byte)(&k.ID), &k.Kind, &k.Size)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for copies of %d messages: %w", len(ids), err)
	}
	return found, nil
}

// ShowKept returns the copies of one message with their bodies, the oldest first, at most 100. A message has several
// if it was relayed more than once, or by several relays.
func (s *Store) ShowKept(ctx context.Context, db Queryer, id saga.ID) ([]Kept, error) {
	rows, err := db.Query(ctx, s.kept.Get("show_kept"), [16]byte(id), mostShown)
	if err != nil {
		return nil, fmt.Errorf("show relayed message %s: %w", id, err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k Kept, err error) {
		var sent *time.Time
		err = row.Scan(&k.Endpoint, &k.Relayed, (*[16]byte)(&k.ID), &sent, &k.Kind, &k.Header, &k.Body)
		if sent != nil {
			k.Sent = *sent
		}
		k.Size = len(k.Body)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("show relayed message %s: %w", id, err)
	}
	return found, nil
}

// ReadBodies reads the bodies of copies that ListKept found for one endpoint. The body of a copy that was deleted in
// the meantime is nil.
func (s *Store) ReadBodies(ctx context.Context, db Queryer, found []Kept) error {
	if len(found) == 0 {
		return nil
	}
	relayed, ids := make([]time.Time, len(found)), make([][16]byte, len(found))
	for n := range found {
		relayed[n], ids[n] = found[n].Relayed, found[n].ID
	}
	rows, err := db.Query(ctx, s.kept.Get("kept_bodies"), found[0].Endpoint, relayed, ids)
	if err != nil {
		return fmt.Errorf("read relayed messages: %w", err)
	}
	var place int64
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&place, &body}, func() error {
		found[place-1].Body = append([]byte{}, body...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read relayed messages: %w", err)
	}
	return nil
}
