package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/limit"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A handler of a leased endpoint that has a limit holds one of its slots for as long as it has its message: the slot is
// granted in the transaction that claims the message, renewed with its lease, and given back in the transaction that
// ends it. Who has lost his slot can do none of the three.

// Slot is which slot of the endpoint's limit the handler holds, and its epoch, which grows with each grant of the slot:
// give it to a system outside that can refuse smaller ones. Both are 0 where the endpoint has no limit, or is not
// leased.
func (c *Context) Slot() (no int, epoch int64) {
	if c.slot == nil {
		return 0, 0
	}
	return c.slot.No, c.slot.Epoch
}

// claimSlotted claims as many messages as there are slots for. It tells whether there was none, so that the messages
// have to wait.
func (l *leased) claimSlotted(ctx context.Context, conn *pgxpool.Conn, want int) (got int, unseated bool, err error) {
	b := &batch{Endpoint: l.Endpoint}
	defer func() { (&batch{Endpoint: l.Endpoint, conn: conn.Conn()}).abandon(ctx) }()
	pipeline := &pgx.Batch{}
	b.begun = time.Now()
	l.queueOpen(pipeline)
	granted := l.bus.limits.QueueGrant(pipeline,
		limit.Request{Name: l.name, Holder: l.holder(), Want: want, TTL: l.options.Lease})
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return 0, false, fmt.Errorf("ask for slots: %w", explain(err))
	}
	var claims []*claimed
	pipeline = &pgx.Batch{}
	if len(granted.Slots) > 0 {
		l.queueClaim(pipeline, b, len(granted.Slots), &claims)
		if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
			return 0, false, fmt.Errorf("claim: %w", explain(err))
		}
	}
	idle := granted.Slots[len(claims):]
	pipeline = &pgx.Batch{}
	if len(idle) > 0 {
		l.bus.limits.QueueRelease(pipeline, idle)
	}
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return 0, false, fmt.Errorf("claim: %w", explain(err))
	}
	if granted.Waiting && len(idle) > 0 {
		l.leaveLine(ctx, conn)
	}
	if len(claims) == 0 {
		if len(granted.Slots) > 0 {
			l.wakeForNext(ctx, conn.Conn())
		}
		return 0, len(granted.Slots) == 0, nil
	}
	for n, c := range claims {
		c.slot = &granted.Slots[n]
	}
	l.beginAll(b, claims)
	return b.got(claims, want), false, nil
}

// leaveLine gives up our place among those who wait for slots: there is nothing to do.
func (l *leased) leaveLine(ctx context.Context, conn *pgxpool.Conn) {
	if err := l.bus.limits.Withdraw(ctx, pg.Conn{Conn: conn.Conn()}, l.name, l.holder()); err != nil {
		l.bus.log.Debug("edda: the line for slots was not left", "endpoint", l.name, "error", err) // the ticket expires
	}
}

func (l *leased) holder() string { return l.owner.String() }

// awaitSlot waits until slots may be free: somebody has called, or it is time to say that we still wait.
func (l *leased) awaitSlot(ctx context.Context) {
	timer := time.NewTimer(run.Jitter(min(l.options.Poll, time.Second)))
	defer timer.Stop()
	select {
	case <-l.pump.seats:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// slotsOf lists the slots that claims hold.
func slotsOf(claims []*claimed) (slots []limit.Slot) {
	for _, c := range claims {
		if c.slot != nil {
			slots = append(slots, *c.slot)
		}
	}
	return slots
}

// renewSlots renews the slots of claims, and tells which of them are lost and which were not renewed for now.
func (l *leased) renewSlots(ctx context.Context, conn *pgxpool.Conn, claims []*claimed) (lost, busy map[limit.Slot]bool,
	err error) {
	slots := slotsOf(claims)
	if len(slots) == 0 {
		return nil, nil, nil
	}
	gone, later, err := l.bus.limits.Renew(ctx, pg.Conn{Conn: conn.Conn()}, slots, l.options.Lease)
	if err != nil {
		return nil, nil, fmt.Errorf("renew slots: %w", explain(err))
	}
	return asSet(gone), asSet(later), nil
}

func asSet(slots []limit.Slot) map[limit.Slot]bool {
	set := map[limit.Slot]bool{}
	for _, s := range slots {
		set[s] = true
	}
	return set
}

// lockSlots learns, and makes sure until the COMMIT, which claims may be finished.
func (f *finishing) lockSlots(pipeline *pgx.Batch) (held func() map[limit.Slot]bool) {
	slots := slotsOf(f.claims)
	if len(slots) == 0 {
		return func() map[limit.Slot]bool { return nil }
	}
	answer := f.bus.limits.QueueHeld(pipeline, slots)
	return func() map[limit.Slot]bool {
		set := map[limit.Slot]bool{}
		for n, s := range slots {
			set[s] = answer[n]
		}
		return set
	}
}

// queueSlots queues the return of the slots of what was ended.
func (f *finishing) queueSlots(pipeline *pgx.Batch) {
	var ended []*claimed
	for n, c := range f.claims {
		if f.won[n] {
			ended = append(ended, c)
		}
	}
	if slots := slotsOf(ended); len(slots) > 0 {
		f.freed = f.bus.limits.QueueRelease(pipeline, slots)
	}
}

// callWaiting calls those who wait for the slots that are free now.
func (l *leased) callWaiting(ctx context.Context, f *finishing) {
	if f.freed == nil {
		return
	}
	l.pump.limitChanged()
	if len(f.freed.Waiting) == 0 || l.bus.wakeup == PollOnly {
		return
	}
	if err := l.bus.limits.Call(ctx, l.pool, f.freed.Waiting...); err != nil {
		l.bus.log.Debug("edda: notify", "error", err) // they ask again by themselves
	}
}

// bidFarewell gives back what is left, so that nobody waits for the end of our leases.
func (l *leased) bidFarewell(ctx context.Context) {
	if !l.limited.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := l.bus.limits.Farewell(ctx, l.pool, l.holder()); err != nil {
		l.bus.log.Debug("edda: slots were not given back", "endpoint", l.name, "error", err) // they expire
	}
}
