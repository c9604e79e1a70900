package scheduler

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/plan"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// parcel is one transaction of a dispatcher: it claims runs, sends their messages, and marks them active.
type parcel struct {
	*Scheduler
	wanted []candidate

	sent    []saga.ID   // runs
	letters []saga.ID   // their messages
	late    []candidate // there was no time for them
	refused *claim      // could not be sent, and the connection lives
}

// claim is a run that this transaction has locked.
type claim struct {
	id               saga.ID
	manifest, kind   string
	definition, body []byte
	due              time.Time
	attempt, refused int
}

// Transactor is a Sender with transactions of its own, which wake those who wait for its messages right after the
// commit. *bus.Bus is one. A Scheduler dispatches in them, at READ COMMITTED: strict caps count what others have
// committed.
type Transactor interface {
	Transact(ctx context.Context, level sql.IsolationLevel, fn func(tx pgx.Tx) error) error
}

// allSender is a Sender that puts many messages on its bus faster than one by one: all of them, or the transaction is
// of no use any more. *bus.Bus is one.
type allSender interface {
	SendAllTx(ctx context.Context, tx pgx.Tx, all []saga.Posting) ([]saga.Sent, error)
}

// deliver is not cut off by the end of ctx: what is being sent is sent, or the Sender has hung for too long.
func (p *parcel) deliver(ctx context.Context) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), dispatchMost)
	defer cancel()
	freed := 0
	work := func(tx pgx.Tx) (err error) {
		freed, err = p.fill(whole, ctx.Done(), tx)
		return err
	}
	err := error(nil)
	if t, ok := p.sender.(Transactor); ok {
		err = t.Transact(whole, sql.LevelReadCommitted, work)
	} else {
		err = pgx.BeginFunc(whole, p.pool, work)
	}
	if err == nil && freed > 0 {
		p.call(whole, p.due, evaluatePayload)
	}
	return err
}

// fill tells how many manifests are due again at once, since their runs are dispatched.
func (p *parcel) fill(ctx context.Context, ended <-chan struct{}, tx pgx.Tx) (freed int, err error) {
	wanted, err := p.admitted(ctx, tx)
	if err != nil {
		return 0, err
	}
	claims, err := p.claim(ctx, tx, wanted)
	if err != nil {
		return 0, fmt.Errorf("claim runs: %w", err)
	}
	if all, ok := p.sender.(allSender); ok && len(claims) > 1 {
		err = p.sendTogether(ctx, all, tx, claims)
	} else {
		err = p.sendAll(ctx, ended, tx, claims)
	}
	if err != nil || len(p.sent) == 0 {
		return 0, err
	}
	return p.mark(ctx, tx)
}

// admitted leaves out what a strict cap has no room for: it is counted while no other server can count it.
func (p *parcel) admitted(ctx context.Context, tx pgx.Tx) ([]candidate, error) {
	b := &pgx.Batch{}
	p.queueOpen(b, dispatchLimits)
	var strict []int32
	for _, c := range p.wanted {
		if c.strict {
			strict = append(strict, c.group)
		}
	}
	locked, room := map[int32]bool{}, map[int32]int{}
	if len(strict) > 0 {
		b.Queue(p.sql.Get("lock_groups"), strict).Query(func(rows pgx.Rows) error {
			var id int32
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { locked[id] = true; return nil })
			return err
		})
		b.Queue(p.sql.Get("rooms"), strict).Query(func(rows pgx.Rows) error {
			var id int32
			var n int
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { room[id] = n; return nil })
			return err
		})
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("count the runs of strict groups: %w", err)
	}
	return p.within(locked, room), nil
}

// within keeps what has room. A group without a number in room has lost its cap since it was looked at.
func (p *parcel) within(locked map[int32]bool, room map[int32]int) (kept []candidate) {
	for _, c := range p.wanted {
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

// claim locks those runs that are queued still, and that nobody else has locked.
func (p *parcel) claim(ctx context.Context, tx pgx.Tx, wanted []candidate) ([]claim, error) {
	ids, groups := make([]saga.ID, len(wanted)), make([]int32, len(wanted))
	for i, c := range wanted {
		ids[i], groups[i] = c.id, c.group
	}
	rows, err := tx.Query(ctx, p.sql.Get("claim"), ids, groups)
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
				p.log.Debug("edda: a run is already claimed by another server, or gone, and is skipped", "run", c.id)
			}
		}
	}
	return claims, err
}

// sendAll sends until there is no time left; at least one, for what has been waited for long enough.
func (p *parcel) sendAll(ctx context.Context, ended <-chan struct{}, tx pgx.Tx, claims []claim) error {
	began := time.Now()
	for i, c := range claims {
		if i > 0 && (time.Since(began) >= sendFor || closed(ended)) {
			p.postpone(claims[i:])
			return nil
		}
		sent, err := p.sender.SendTx(ctx, tx, saga.Raw{Name: c.kind, Body: c.body}, saga.WithFire(c.fire()))
		if err != nil {
			if !tx.Conn().IsClosed() && ctx.Err() == nil {
				p.refused = &claims[i]
			}
			return fmt.Errorf("send %s for manifest %s, run %s: %w", c.kind, c.manifest, c.id, err)
		}
		p.sent, p.letters = append(p.sent, c.id), append(p.letters, sent.ID)
	}
	return nil
}

// sendTogether sends all of them, or none. Which of them was refused is found out by sending each alone.
func (p *parcel) sendTogether(ctx context.Context, sender allSender, tx pgx.Tx, claims []claim) error {
	all := make([]saga.Posting, len(claims))
	for i, c := range claims {
		all[i] = saga.Posting{Message: saga.Raw{Name: c.kind, Body: c.body},
			Options: []saga.SendOption{saga.WithFire(c.fire())}}
	}
	sent, err := sender.SendAllTx(ctx, tx, all)
	if err == nil && len(sent) != len(all) {
		err = fmt.Errorf("the Sender has told of %d messages", len(sent))
	}
	if err != nil {
		if !tx.Conn().IsClosed() && ctx.Err() == nil {
			p.refused = &claims[0]
		}
		return fmt.Errorf("send the messages of %d runs: %w", len(claims), err)
	}
	for i, c := range claims {
		p.sent, p.letters = append(p.sent, c.id), append(p.letters, sent[i].ID)
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

func (p *parcel) postpone(claims []claim) {
	for _, c := range p.wanted {
		for _, late := range claims {
			if c.id == late.id {
				p.late = append(p.late, c)
			}
		}
	}
}

// fire is what the message says of its firing. The due time is told in the zone of the manifest.
func (c claim) fire() saga.Fire {
	return saga.Fire{Manifest: c.manifest, Run: c.id, Attempt: c.attempt + 1, Due: c.due.In(plan.ZoneOf(c.definition))}
}

// mark makes the runs active, and writes their attempts.
func (p *parcel) mark(ctx context.Context, tx pgx.Tx) (freed int, err error) {
	b := &pgx.Batch{}
	b.Queue(p.sql.Get("sent"), p.sent, p.letters)
	b.Queue(p.sql.Get("let_go"), p.sent).QueryRow(func(row pgx.Row) error { return row.Scan(&freed) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return 0, fmt.Errorf("mark runs as dispatched: %w", err)
	}
	return freed, nil
}
