package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Request is a request for slots.
type Request struct {
	Name   string        // of the limit; any text: without such a limit, Granted.Limited is false
	Holder string        // 1 to 300 bytes; no other process has this name, nor an earlier run of this one
	Want   int           // slots, at least 1
	Lease  time.Duration // of the granted slots, until they are renewed

	// Patience is how long the holder's place in the line counts, from each request; 0 is 3 s, or the Lease if that
	// is shorter. A holder that dies while it waits delays the holders behind it by this time, once.
	Patience time.Duration
}

const standardPatience = 3 * time.Second

// Granted is the result of a Request.
type Granted struct {
	Limited bool   // a limit of that name exists: do not work without a slot
	Waiting bool   // fewer slots were granted than wanted, and the holder is in line: try again, or Withdraw
	Slots   []Slot // granted, from the commit of the transaction on
}

// Grant requests slots, in the transaction that also begins the work. A slot is held from the commit on; if the
// transaction is rolled back, nothing is granted. Grant waits for no lock. The transaction should be short: until it
// ends, all other holders count its slots as granted. Release slots that are not needed with QueueRelease in the same
// transaction, and withdraw the ticket when there is no more work. Without a limit of that name, Grant is one probe
// of an index.
//
// A holder that is Waiting repeats its request when it is notified (see Call), and in any case within Patience.
func (s *Store) Grant(ctx context.Context, tx Sender, r Request) (Granted, error) {
	b := &pgx.Batch{}
	g := s.QueueGrant(b, r)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Granted{}, fmt.Errorf("acquire slots of limit %s: %w", r.Name, err)
	}
	return *g, nil
}

// QueueGrant is Grant in a pipeline of the caller. The result is set after the results of the batch were read.
func (s *Store) QueueGrant(b *pgx.Batch, r Request) *Granted {
	g := &Granted{}
	patience := r.Patience
	if patience <= 0 {
		patience = min(standardPatience, r.Lease)
	}
	want := max(1, r.Want)
	b.Queue(s.sql.Get("grant"), r.Name, r.Holder, want, r.Lease.Microseconds(), patience.Microseconds()).Query(
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

// QueuePermit takes a slot for this transaction alone, by a row lock. A crash frees it at once, it writes nothing,
// and needs no fence. It waits for no lock, and has no line: a permit lasts for milliseconds. The result is set after
// the results of the batch were read. Later statements of the pipeline may read it from the setting edda.permit, "1"
// or "0". Without a limit of that name, there is no permit.
func (s *Store) QueuePermit(b *pgx.Batch, name string) (taken *bool) {
	taken = new(bool)
	b.Queue(s.sql.Get("permit"), name).QueryRow(func(row pgx.Row) error {
		setting := ""
		return row.Scan(&setting, taken)
	})
	return taken
}
