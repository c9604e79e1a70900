package leased

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A handler of a leased endpoint that has a limit holds one slot of the limit while it has its message. The slot is
// granted in the transaction that claims the message, renewed with the lease, and returned in the transaction that
// ends the message. A process that has lost the slot can do nothing of this.

// claimSlotted claims at most as many messages as there are free slots.
func (c *claimer) claimSlotted(ctx context.Context, conn *pgxpool.Conn, want int) (got, error) {
	b := message.NewDecoder(c.To, time.Now())
	defer c.rollback(ctx, conn.Conn())
	pipeline := c.openAt(&b.Now)
	granted := c.Limit.Store.QueueGrant(pipeline,
		limit.Request{Name: c.To.Name, Holder: c.holder(), Want: want, Lease: c.Options.Lease})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("acquire slots: %w", pgerr.Explain(err))
	}
	var all []*claimed
	if len(granted.Slots) > 0 {
		pipeline = &pgx.Batch{}
		c.queueClaim(pipeline, b, len(granted.Slots), &all)
		if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
			return got{}, fmt.Errorf("claim: %w", pgerr.Explain(err))
		}
	}
	pipeline = &pgx.Batch{}
	idle := granted.Slots[len(all):]
	if len(idle) > 0 {
		c.Limit.Store.QueueRelease(pipeline, idle)
	}
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("claim: %w", pgerr.Explain(err))
	}
	if granted.Waiting && len(idle) > 0 {
		c.leaveLine(ctx, conn)
	}
	if len(all) == 0 {
		if len(granted.Slots) > 0 {
			c.To.WakeForNext(ctx, conn.Conn(), c.Alarm, b.Now)
		}
		return got{noSlot: len(granted.Slots) == 0}, nil
	}
	for n, m := range all {
		m.slot = &granted.Slots[n]
	}
	return c.beginAll(b, all, want), nil
}

// leaveLine gives up this Run's place in the line for slots, since there is no message for one.
func (c *claimer) leaveLine(ctx context.Context, conn *pgxpool.Conn) {
	if err := c.Limit.Store.Withdraw(ctx, pg.Conn{Conn: conn.Conn()}, c.To.Name, c.holder()); err != nil {
		c.To.Log.Debug("edda: the ticket for slots was not withdrawn", "endpoint", c.To.Name, "error", err)
	}
}

// awaitSlot waits until slots may be free: a notification has come, or it is time to renew the ticket.
func (c *claimer) awaitSlot(ctx context.Context) {
	run.Wait(ctx, run.Jitter(min(c.Options.Poll, time.Second)), c.Limit.Changed)
}

// slotsOf lists the slots that claims hold.
func slotsOf(claims []*claimed) (slots []limit.Slot) {
	for _, m := range claims {
		if m.slot != nil {
			slots = append(slots, *m.slot)
		}
	}
	return slots
}

// queueSlots queues the return of the slots of ended messages.
func (t *finishing) queueSlots(pipeline *pgx.Batch) {
	var ended []*claimed
	for n, m := range t.claims {
		if t.won[n] {
			ended = append(ended, m)
		}
	}
	if slots := slotsOf(ended); len(slots) > 0 {
		t.freed = t.Limit.Store.QueueRelease(pipeline, slots)
	}
}

// callWaiting notifies processes that wait for the slots that are free now.
func (t *finishing) callWaiting(ctx context.Context) {
	if t.freed == nil {
		return
	}
	t.Hub.Hear(limit.CallPrefix + t.To.Name)
	if len(t.freed.Waiting) == 0 || !t.Options.Notifies {
		return
	}
	if err := t.Limit.Store.Call(ctx, t.Pool, t.freed.Waiting...); err != nil {
		t.To.Log.Debug("edda: notify failed", "error", err) // they try again by themselves
	}
}

// releaseAll returns the remaining slots, so that no process waits for the end of their leases.
func (t *Terms) releaseAll(ctx context.Context) {
	if !t.Limit.Set.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := t.Limit.Store.ReleaseAll(ctx, t.Pool, t.holder()); err != nil {
		t.To.Log.Debug("edda: slots were not released", "endpoint", t.To.Name, "error", err) // they expire
	}
}
