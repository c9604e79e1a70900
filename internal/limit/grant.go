package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Request asks for slots.
type Request struct {
	Name   string        // of the limit; any text, for where there is no such limit the answer says so
	Holder string        // a name that no other process has, nor an earlier life of this one: 1 to 300 bytes
	Want   int           // slots, at least 1
	TTL    time.Duration // of what is granted, until it is renewed

	// Patience is for how long the holder's place in the line counts, from each asking; 0 is 3 s, or the TTL if that is
	// shorter. Who dies while waiting holds up those behind him for that long, once.
	Patience time.Duration
}

const standardPatience = 3 * time.Second

// Granted is the answer to a Request.
type Granted struct {
	Limited bool   // there is a limit of that name: without a slot nothing may be done
	Waiting bool   // fewer slots were granted than wanted, and the holder stands in the line: ask again, or Withdraw
	Slots   []Slot // granted, from the commit of the transaction on
}

// Grant asks for slots, in the transaction that also begins the work: a slot is held from its commit on, and if it is
// rolled back nothing has happened. It waits for no lock. The transaction should be short: until it ends, others take
// its slots for granted. Slots that turn out not to be needed are given back by QueueRelease in the same transaction,
// and a holder that has no more work withdraws its ticket. Where there is no limit this is one probe of an index.
//
// Who is Waiting asks again when called (see QueueRelease), and in any case within Patience.
func (s *Store) Grant(ctx context.Context, tx Sender, r Request) (Granted, error) {
	b := &pgx.Batch{}
	g := s.QueueGrant(b, r)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Granted{}, fmt.Errorf("ask for slots of limit %s: %w", r.Name, err)
	}
	return *g, nil
}

// QueueGrant is Grant for a pipeline of the caller's. The answer is there when the batch's results were read.
func (s *Store) QueueGrant(b *pgx.Batch, r Request) *Granted {
	g := &Granted{}
	patience := r.Patience
	if patience <= 0 {
		patience = min(standardPatience, r.TTL)
	}
	want := max(1, r.Want)
	b.Queue(s.sql.Get("grant"), r.Name, r.Holder, want, r.TTL.Microseconds(), patience.Microseconds()).Query(
		func(rows pgx.Rows) error {
			for rows.Next() {
				var (
					no    *int
					epoch *int64
				)
				if err := rows.Scan(&no, &epoch); err != nil {
					return err
				}
				g.Limited = true
				if no != nil {
					g.Slots = append(g.Slots, Slot{Name: r.Name, No: *no, Holder: r.Holder, Epoch: *epoch})
				}
			}
			g.Waiting = g.Limited && len(g.Slots) < want
			return rows.Err()
		})
	return g
}

// Seat is the answer to QueueSeat.
type Seat struct {
	Taken  bool // the transaction holds a slot until it ends
	Closed bool // no slot is enabled: the limit is paused
}

// QueueSeat takes a slot for the transaction alone, by a row lock: a crash frees it at once, nothing is written, and
// nobody needs to be fenced. It waits for no lock, and nobody stands in a line for it: a seat lasts for milliseconds.
// The answer is there when the batch's results were read; statements behind it in the pipeline may read it from the
// setting edda.seat, "1" or "0". Without a limit of that name there is no seat.
func (s *Store) QueueSeat(b *pgx.Batch, name string) *Seat {
	seat := &Seat{}
	b.Queue(s.sql.Get("seat"), name).QueryRow(func(row pgx.Row) error {
		setting, open := "", false
		err := row.Scan(&setting, &seat.Taken, &open)
		seat.Closed = !open
		return err
	})
	return seat
}
