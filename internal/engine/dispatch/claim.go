package dispatch

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// dispatch is one transaction of a dispatcher: it claims runs, sends their messages, and marks them active.
type dispatch struct {
	*dispatcher
	wanted []candidate

	sent    []saga.ID   // runs
	letters []saga.ID   // their messages
	late    []candidate // runs that the dispatch had no time for
	refused *claim      // the run that could not be sent, if the connection is alive
}

// claim is a run that this transaction has locked.
type claim struct {
	id               saga.ID
	manifest, kind   string
	definition, body []byte
	due              time.Time
	attempt, refused int
}

// Transactor is a Sender with transactions of its own, which wakes the consumers of its messages after a commit. An
// Engine dispatches in them, at READ COMMITTED, because strict caps count the runs that others have committed.
type Transactor interface {
	InTx(ctx context.Context, fn func(tx pgx.Tx) error, level ...sql.IsolationLevel) error
}

// AllSender is a Sender that sends many messages faster than one by one: all of them, or the transaction cannot be
// used any more. *bus.Bus implements it.
type AllSender interface {
	SendAllTx(ctx context.Context, tx pgx.Tx, all []saga.Posting) ([]saga.Sent, error)
}

// deliver does not end with ctx: it completes the sends in hand, unless the Sender hangs for dispatchMost.
func (d *dispatch) deliver(ctx context.Context) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispatchMost)
	defer cancel()
	freed := 0
	work := func(tx pgx.Tx) (err error) {
		freed, err = d.fill(whole, ctx.Done(), tx)
		return err
	}
	err := error(nil)
	if t, ok := d.sender.(Transactor); ok {
		err = t.InTx(whole, work, sql.LevelReadCommitted)
	} else {
		err = pgx.BeginFunc(whole, d.pool, work)
	}
	if err == nil && freed > 0 {
		d.call(whole, d.due, evaluatePayload)
	}
	return err
}

// fill claims and sends the runs. It returns how many manifests are due again at once, because their runs are
// dispatched.
func (d *dispatch) fill(ctx context.Context, ended <-chan struct{}, tx pgx.Tx) (freed int, err error) {
	wanted, err := d.admitted(ctx, tx)
	if err != nil {
		return 0, err
	}
	claims, err := d.claim(ctx, tx, wanted)
	if err != nil {
		return 0, fmt.Errorf("claim runs: %w", err)
	}
	if all, ok := d.sender.(AllSender); ok && len(claims) > 1 {
		err = d.sendTogether(ctx, all, tx, claims)
	} else {
		err = d.sendAll(ctx, ended, tx, claims)
	}
	if err != nil || len(d.sent) == 0 {
		return 0, err
	}
	return d.mark(ctx, tx)
}

// admitted leaves out runs beyond a strict cap. The cap is counted while no other server can count it.
func (d *dispatch) admitted(ctx context.Context, tx pgx.Tx) ([]candidate, error) {
	b := &pgx.Batch{}
	d.queueOpen(b, dispatchLimits)
	var strict []int32
	for _, c := range d.wanted {
		if c.strict {
			strict = append(strict, c.group)
		}
	}
	locked, room := map[int32]bool{}, map[int32]int{}
	if len(strict) > 0 {
		b.Queue(d.sql.Get("lock_groups"), strict).Query(func(rows pgx.Rows) error {
			var id int32
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { locked[id] = true; return nil })
			return err
		})
		b.Queue(d.sql.Get("rooms"), strict).Query(func(rows pgx.Rows) error {
			var id int32
			var n int
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { room[id] = n; return nil })
			return err
		})
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("count the runs of strict groups: %w", err)
	}
	return d.within(locked, room), nil
}

// within keeps the runs that fit into the room. A group without a number in room has lost its cap since it was read.
func (d *dispatch) within(locked map[int32]bool, room map[int32]int) (kept []candidate) {
	for _, c := range d.wanted {
		left, capped := room[c.group]
		switch {
		case c.strict && (!locked[c.group] || capped && left == 0):
			continue
		case c.strict && capped:
			room[c.group]--
		}
		kept = append(kept, c)
	}
	return kept
}

// claim locks the runs in wanted that are still queued and that no other transaction has locked.
func (d *dispatch) claim(ctx context.Context, tx pgx.Tx, wanted []candidate) ([]claim, error) {
	ids, groups := make([]saga.ID, len(wanted)), make([]int32, len(wanted))
	for i, c := range wanted {
		ids[i], groups[i] = c.id, c.group
	}
	rows, err := tx.Query(ctx, d.sql.Get("claim"), ids, groups)
	if err != nil {
		return nil, err
	}
	claims, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claim, err error) {
		err = row.Scan(&c.id, &c.manifest, &c.definition, &c.due, &c.attempt, &c.refused, &c.kind, &c.body)
		return c, err
	})
	if len(claims) < len(wanted) {
		had := map[saga.ID]bool{}
		for _, c := range claims {
			had[c.id] = true
		}
		for _, c := range wanted {
			if !had[c.id] && err == nil {
				d.log.Debug("edda: a run is skipped: another server has claimed it, or it was deleted", "run", c.id)
			}
		}
	}
	return claims, err
}

// sendAll sends until the time is over, and at least one message, for the run that has waited longest.
func (d *dispatch) sendAll(ctx context.Context, ended <-chan struct{}, tx pgx.Tx, claims []claim) error {
	began := time.Now()
	for i, c := range claims {
		if i > 0 && (time.Since(began) >= sendFor || closed(ended)) {
			d.postpone(claims[i:])
			return nil
		}
		sent, err := d.sender.SendTx(ctx, tx, saga.Raw{Name: c.kind, Body: c.body}, saga.WithFiring(c.fire()))
		if err != nil {
			if !tx.Conn().IsClosed() && ctx.Err() == nil {
				d.refused = &claims[i]
			}
			return fmt.Errorf("send %s for manifest %s, run %s: %w", c.kind, c.manifest, c.id, err)
		}
		d.sent, d.letters = append(d.sent, c.id), append(d.letters, sent.ID)
	}
	return nil
}

// sendTogether sends all messages, or no message. Sending each alone then shows which one was refused.
func (d *dispatch) sendTogether(ctx context.Context, sender AllSender, tx pgx.Tx, claims []claim) error {
	all := make([]saga.Posting, len(claims))
	for i, c := range claims {
		all[i] = saga.Posting{Message: saga.Raw{Name: c.kind, Body: c.body},
			Options: []saga.SendOption{saga.WithFiring(c.fire())}}
	}
	sent, err := sender.SendAllTx(ctx, tx, all)
	if err == nil && len(sent) != len(all) {
		err = fmt.Errorf("the Sender returned %d messages", len(sent))
	}
	if err != nil {
		if !tx.Conn().IsClosed() && ctx.Err() == nil {
			d.refused = &claims[0]
		}
		return fmt.Errorf("send the messages of %d runs: %w", len(claims), err)
	}
	for i, c := range claims {
		d.sent, d.letters = append(d.sent, c.id), append(d.letters, sent[i].ID)
	}
	return nil
}

func closed(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

func (d *dispatch) postpone(claims []claim) {
	for _, c := range d.wanted {
		for _, late := range claims {
			if c.id == late.id {
				d.late = append(d.late, c)
			}
		}
	}
}

// fire returns the firing that the message carries. The due time is in the time zone of the manifest.
func (c claim) fire() saga.Firing {
	return saga.Firing{Manifest: c.manifest, Run: c.id, Attempt: c.attempt + 1,
		Due: c.due.In(plan.ZoneOf(c.definition))}
}

// mark makes the runs active, and writes their attempts.
func (d *dispatch) mark(ctx context.Context, tx pgx.Tx) (freed int, err error) {
	b := &pgx.Batch{}
	b.Queue(d.sql.Get("sent"), d.sent, d.letters)
	b.Queue(d.sql.Get("let_go"), d.sent).QueryRow(func(row pgx.Row) error { return row.Scan(&freed) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, fmt.Errorf("mark runs as dispatched: %w", err)
	}
	return freed, nil
}
