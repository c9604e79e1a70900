package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Held reports for each slot whether its holder still has it, and locks the held ones until the transaction ends: so
// the writes of the transaction are the holder's. It may wait for a heartbeat or a change of the limit, which are
// short, so call it before anything that locks rows for which others wait. A slot whose lease is over is not held,
// even if no other holder has got it.
func (s *Store) Held(ctx context.Context, tx Sender, slots []Slot) ([]bool, error) {
	if len(slots) == 0 {
		return nil, nil
	}
	b := &pgx.Batch{}
	held := s.QueueHeld(b, slots)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("compare slots: %w", err)
	}
	return held, nil
}

// QueueHeld is Held in a pipeline of the caller. The results, one for each slot, are set after the results of the
// batch were read.
func (s *Store) QueueHeld(b *pgx.Batch, slots []Slot) []bool {
	held := make([]bool, len(slots))
	if len(slots) == 0 {
		return held
	}
	c := inOrder(slots)
	b.Queue(s.sql.Get("held"), c.name, c.no, c.holder, c.epoch).Query(func(rows pgx.Rows) error {
		n := 0
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			held[c.at[n-1]] = true
			return nil
		})
		return err
	})
	return held
}

// Released is the result of a release.
type Released struct {
	Slots   int      // slots that their holders still had, and that are free now
	Waiting []string // limits with waiting holders: pass them to Call after the commit
}

// QueueRelease releases slots. It does not touch slots that were granted again. The result is set after the results
// of the batch were read.
func (s *Store) QueueRelease(b *pgx.Batch, slots []Slot) *Released {
	r := &Released{}
	if len(slots) == 0 {
		return r
	}
	c := inOrder(slots)
	b.Queue(s.sql.Get("release"), c.name, c.no, c.holder, c.epoch).Query(func(rows pgx.Rows) error {
		var (
			name    string
			freed   int
			waiting bool
		)
		_, err := pgx.ForEachRow(rows, []any{&name, &freed, &waiting}, func() error {
			r.Slots += freed
			if waiting {
				r.Waiting = append(r.Waiting, name)
			}
			return nil
		})
		return err
	})
	return r
}

// Call notifies holders that wait for slots of the limits, so that they try again now. It is a transaction of its
// own, because Postgres commits transactions that notify one at a time.
func (s *Store) Call(ctx context.Context, db Execer, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	if _, err := db.Exec(ctx, s.sql.Get("call"), s.channel, names); err != nil {
		return fmt.Errorf("notify the processes that wait for limits %v: %w", names, err)
	}
	return nil
}

// Renew is the heartbeat: the holders keep their slots for lease from now. lost are slots that have expired or have a
// new holder: the work under them must end. busy are slots whose rows are locked now and were not renewed: their
// holder may trust them as long as before, and tries again with the next heartbeat. After an error the state is
// unknown. Renew waits for no lock.
func (s *Store) Renew(ctx context.Context, db Sender, slots []Slot, lease time.Duration) (lost, busy []Slot,
	err error) {
	if len(slots) == 0 {
		return nil, nil, nil
	}
	c := inOrder(slots)
	b := &pgx.Batch{}
	b.Queue(s.sql.Get("renew"), c.name, c.no, c.holder, c.epoch, lease.Microseconds()).Query(func(rows pgx.Rows) error {
		var (
			n     int
			still bool
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &still}, func() error {
			if slot := slots[c.at[n-1]]; still {
				busy = append(busy, slot)
			} else {
				lost = append(lost, slot)
			}
			return nil
		})
		return err
	})
	if err := db.SendBatch(ctx, b).Close(); err != nil {
		return nil, nil, fmt.Errorf("renew slots: %w", err)
	}
	return lost, busy, nil
}

// Withdraw gives up the holder's place in the line, because it has no more work.
func (s *Store) Withdraw(ctx context.Context, db Execer, name, holder string) error {
	if _, err := db.Exec(ctx, s.sql.Get("withdraw"), name, holder); err != nil {
		return fmt.Errorf("withdraw from limit %s: %w", name, err)
	}
	return nil
}

// ReleaseAll releases all slots and tickets of the holder, and notifies waiting holders. No work may continue under
// its slots. It is a transaction of its own.
func (s *Store) ReleaseAll(ctx context.Context, db Execer, holder string) error {
	if _, err := db.Exec(ctx, s.sql.Get("release_all"), holder, s.channel); err != nil {
		return fmt.Errorf("release the slots of %s: %w", holder, err)
	}
	return nil
}

// Prune deletes at most limit tickets that expired longer than olderThan ago, whose holders do not come back. It
// returns how many it deleted.
func (s *Store) Prune(ctx context.Context, db Execer, olderThan time.Duration, limit int) (int64, error) {
	tag, err := db.Exec(ctx, s.sql.Get("prune"), olderThan.Microseconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("prune tickets: %w", err)
	}
	return tag.RowsAffected(), nil
}
