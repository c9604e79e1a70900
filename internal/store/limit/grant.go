package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Request asks for slots.
type Request struct {
	Name   string        // of the limit; any text: if there is no such limit, the answer says so
	Holder string        // 1 to 300 bytes; no other process has this name, and no earlier run of this one
	Want   int           // slots, at least 1
	Lease  time.Duration // of what is granted, until it is renewed

	// Patience is for how long the holder's place in the line counts, from each request; 0 is 3 s, or the Lease if that
	// is shorter. A holder that dies while it waits holds up those behind it for that long, once.
	Patience time.Duration
}

const standardPatience = 3 * time.Second

// Granted is the answer to a Request.
type Granted struct {
	Limited bool   // there is a limit of that name: without a slot nothing may be done
	Waiting bool   // fewer slots were granted than wanted, and the holder stands in the line: ask again, or Withdraw
	Slots   []Slot // granted, from the commit of the transaction on
}

// Grant asks for slots, in the transaction that also begins the work. A slot is held from the commit on, and if the
// transaction is rolled back, nothing has happened. Grant waits for no lock. The transaction should be short: until it
// ends, its slots count as granted for everybody else. Give back slots that are not needed with QueueRelease in the
// same transaction, and withdraw the ticket when there is no more work. If there is no limit, Grant is one probe of an
// index.
//
// A holder that is Waiting asks again when it is notified (see Call), and in any case within Patience.
func (s *Store) Grant(ctx context.Context, tx Sender, r Request) (Granted, error) {
	b := &pgx.Batch{}
	g := s.QueueGrant(b, r)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Granted{}, fmt.Errorf("ask for slots of limit %s: %w", r.Name, err)
	}
	return *g, nil
}

// QueueGrant is Grant in a pipeline of the caller. The answer is there when the results of the batch were read.
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

// QueuePermit takes a slot for this transaction alone, by a row lock. A crash frees it at once, nothing is written, and
// no fence is needed. It waits for no lock, and there is no line for it: a permit lasts for milliseconds. The answer is
// there when the results of the batch were read. Later statements of the pipeline may read it from the setting
// edda.permit, "1" or "0". If there is no limit of that name, there is no permit.
func (s *Store) QueuePermit(b *pgx.Batch, name string) (taken *bool) {
	taken = new(bool)
	b.Queue(s.sql.Get("permit"), name).QueryRow(func(row pgx.Row) error {
		setting := ""
		return row.Scan(&setting, taken)
	})
	return taken
}
