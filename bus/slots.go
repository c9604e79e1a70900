package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/delivery"
	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A handler of a leased endpoint that has a limit holds one slot of the limit for as long as it has its message. The
// slot is granted in the transaction that claims the message, renewed with the lease, and given back in the transaction
// that ends the message. A process that has lost the slot can do none of the three.

// Slot is which slot of the endpoint's limit the handler holds, and the slot's epoch, which grows with each grant: give
// the epoch to a system outside that can refuse smaller ones. Both are 0 if the endpoint has no limit, or is not
// leased.
func (c *Context) Slot() (no int, epoch int64) {
	if c.slot == nil {
		return 0, 0
	}
	return c.slot.No, c.slot.Epoch
}

// claimSlotted claims as many messages as there are slots for.
func (c *claimer) claimSlotted(ctx context.Context, conn *pgxpool.Conn, want int) (got, error) {
	b := delivery.NewDecoder(c.ep.recipient, time.Now())
	defer rollback(ctx, c.ep, conn.Conn())
	pipeline := &pgx.Batch{}
	c.queueOpen(pipeline)
	granted := c.ep.bus.limits.QueueGrant(pipeline,
		limit.Request{Name: c.ep.name, Holder: c.holder(), Want: want, Lease: c.ep.options.Lease})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("ask for slots: %w", pg.Explain(err))
	}
	var all []*claimed
	if len(granted.Slots) > 0 {
		pipeline = &pgx.Batch{}
		c.queueClaim(pipeline, b, len(granted.Slots), &all)
		if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
			return got{}, fmt.Errorf("claim: %w", pg.Explain(err))
		}
	}
	pipeline = &pgx.Batch{}
	idle := granted.Slots[len(all):]
	if len(idle) > 0 {
		c.ep.bus.limits.QueueRelease(pipeline, idle)
	}
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("claim: %w", pg.Explain(err))
	}
	if granted.Waiting && len(idle) > 0 {
		c.leaveLine(ctx, conn)
	}
	if len(all) == 0 {
		if len(granted.Slots) > 0 {
			c.ep.wakeForNext(ctx, conn.Conn())
		}
		return got{noSlot: len(granted.Slots) == 0}, nil
	}
	for n, m := range all {
		m.slot = &granted.Slots[n]
	}
	c.beginAll(b, all)
	return gotOf(b, all, want), nil
}

// leaveLine gives up this Run's place among those that wait for slots, since there is no message for one.
func (c *claimer) leaveLine(ctx context.Context, conn *pgxpool.Conn) {
	if err := c.ep.bus.limits.Withdraw(ctx, pg.Conn{Conn: conn.Conn()}, c.ep.name, c.holder()); err != nil {
		c.ep.bus.log.Debug("edda: the line for slots was not left", "endpoint", c.ep.name, "error", err) // it expires
	}
}

// awaitSlot waits until slots may be free: a notification has come, or it is time to renew the ticket.
func (c *claimer) awaitSlot(ctx context.Context) {
	run.Wait(ctx, run.Jitter(min(c.ep.options.Poll, time.Second)), c.ep.permits.changed)
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

func asSet(slots []limit.Slot) map[limit.Slot]bool {
	set := map[limit.Slot]bool{}
	for _, s := range slots {
		set[s] = true
	}
	return set
}

// lockSlots queues the statement that finds out which claims may be finished, and keeps it so until the COMMIT.
func (t *finishing) lockSlots(pipeline *pgx.Batch) (held func() map[limit.Slot]bool) {
	slots := slotsOf(t.claims)
	if len(slots) == 0 {
		return func() map[limit.Slot]bool { return nil }
	}
	answer := t.ep.bus.limits.QueueHeld(pipeline, slots)
	return func() map[limit.Slot]bool {
		set := map[limit.Slot]bool{}
		for n, s := range slots {
			set[s] = answer[n]
		}
		return set
	}
}

// queueSlots queues the return of the slots of what was ended.
func (t *finishing) queueSlots(pipeline *pgx.Batch) {
	var ended []*claimed
	for n, m := range t.claims {
		if t.won[n] {
			ended = append(ended, m)
		}
	}
	if slots := slotsOf(ended); len(slots) > 0 {
		t.freed = t.ep.bus.limits.QueueRelease(pipeline, slots)
	}
}

// callWaiting notifies those that wait for the slots that are free now.
func (t *finishing) callWaiting(ctx context.Context) {
	if t.freed == nil {
		return
	}
	t.ep.bus.hub.Hear(limit.CallPrefix + t.ep.name)
	if len(t.freed.Waiting) == 0 || t.ep.bus.wakeup == PollOnly {
		return
	}
	if err := t.ep.bus.limits.Call(ctx, t.pool, t.freed.Waiting...); err != nil {
		t.ep.bus.log.Debug("edda: notify", "error", err) // they ask again by themselves
	}
}

// releaseAll gives back the slots that are left, so that no process waits for the end of their leases.
func (t *terms) releaseAll(ctx context.Context) {
	if !t.ep.permits.limited.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := t.ep.bus.limits.ReleaseAll(ctx, t.pool, t.holder()); err != nil {
		t.ep.bus.log.Debug("edda: slots were not given back", "endpoint", t.ep.name, "error", err) // they expire
	}
}
