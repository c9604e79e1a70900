package leased

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// claimer claims messages and starts their handlers.
type claimer struct {
	*Terms
	claims     *claims
	runner     *runner
	lanes      *lanes
	quarantine *quarantine
	onItsWay   sync.Mutex  // held while a claim is in flight
	failing    atomic.Bool // the last finish had failures and no success
	retry      contention.Patience
	flight     flight // the last claim
	ending     int    // how many handlers are likely to end while the next claim is in flight
	outage     *pg.Outage
}

// run claims until taking ends.
func (c *claimer) run(taking context.Context) error {
	c.runner.taking = taking
	for c.Alarm.Await(taking) {
		for taking.Err() == nil {
			more, err := c.once(taking)
			pause := c.retry.After(err)
			if err == nil && !more {
				break
			}
			if err == nil {
				continue
			}
			if pgerr.Incurable(err) {
				return err
			}
			c.To.Calm.Warn("edda: a batch was rolled back", "endpoint", c.To.Name, "error", err)
			if run.Sleep(taking, pause) != nil {
				return nil
			}
		}
	}
	return nil
}

// once claims as soon as there is room. It reports whether more messages may be due.
func (c *claimer) once(taking context.Context) (more bool, err error) {
	if !c.calm(taking) || !c.quarantine.run(taking) {
		return true, nil // taking has ended
	}
	want, ahead := c.claims.wanted(c.ending)
	if want == 0 {
		c.awaitRoom(taking)
		return true, nil
	}
	got, err := c.claim(taking, want)
	if err != nil {
		return false, err
	}
	c.outage.Over()
	switch {
	case !c.quarantine.run(taking):
		return true, nil
	case got.noSlot:
		c.awaitSlot(taking)
		return true, nil
	}
	return got.messages >= want-ahead, nil
}

func (c *claimer) awaitRoom(ctx context.Context) {
	select {
	case <-c.claims.room:
	case <-ctx.Done():
	}
}

// awaitClaim waits until the claim in flight has returned.
func (c *claimer) awaitClaim() {
	c.onItsWay.Lock()
	//nolint:staticcheck // an empty critical section: the claim in flight has left it
	c.onItsWay.Unlock()
}

// calm waits before the next message is tried, if the breaker is open and the last finish has failed. It returns
// false if ctx has ended.
func (c *claimer) calm(ctx context.Context) bool {
	if failing := c.failing.Swap(false); !failing || !c.Breaker.Slow() {
		return ctx.Err() == nil
	}
	return c.Breaker.Pause(ctx)
}

// got is the result of a claim.
type got struct {
	messages int  // messages that were due; the number wanted if there may be more
	noSlot   bool // the limit had no slot for any message
}

// claim claims up to want messages that are due and starts their handlers.
//
// A shutdown does not interrupt it: a claim whose COMMIT was cancelled may be in force, and no process would handle
// its messages until the lease ends.
func (c *claimer) claim(taking context.Context, want int) (got, error) {
	c.onItsWay.Lock()
	defer c.onItsWay.Unlock()
	most := min(contention.CommitTimeout, c.trustedFor()) // the process would not trust a claim that takes longer
	ctx, cancel := context.WithTimeout(context.WithoutCancel(taking), most)
	defer cancel()
	c.depart(time.Now())
	defer func() { c.arrive(time.Now()) }()
	conn, err := c.Pool.Acquire(ctx)
	if err != nil {
		return got{}, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	switch {
	case c.Options.Ordered:
		return c.claimInOrder(ctx, conn, want)
	case c.Limit.Set.Load():
		return c.claimSlotted(ctx, conn, want)
	}
	return c.claimFree(ctx, conn, want)
}

// claimFree claims for an endpoint that is not ordered and has no limit. The transaction is over before handlers run.
func (c *claimer) claimFree(ctx context.Context, conn *pgxpool.Conn, want int) (got, error) {
	b := message.NewDecoder(c.To, time.Now())
	var all []*claimed
	pipeline := c.openAt(&b.Now)
	c.queueClaim(pipeline, b, want, &all)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return got{}, fmt.Errorf("claim: %w", pgerr.Explain(err))
	}
	if len(all) == 0 {
		c.To.WakeForNext(ctx, conn.Conn(), c.Alarm, b.Now)
		return got{}, nil
	}
	return c.beginAll(b, all, want), nil
}

// queueClaim queues the statement that claims, and reads the claims into all.
func (t *Terms) queueClaim(pipeline *pgx.Batch, b *message.Decoder, want int, all *[]*claimed) {
	o := &t.Options
	pipeline.Queue(t.To.Queue.SQL("claim"), want, o.Lease.Microseconds(), t.session(), o.BatchBytes,
		t.Session.Trusts()).Query(readClaims(b, all))
}

// gotOf returns the result of a claim. A claim that BatchBytes cut short has left messages behind, like a claim that
// got as many as it wanted.
func gotOf(all []*claimed, want int) got {
	if len(all) < all[0].found {
		return got{messages: want}
	}
	return got{messages: len(all)}
}

// beginAll decodes the claimed messages, and starts their handlers.
func (c *claimer) beginAll(b *message.Decoder, all []*claimed, want int) got {
	c.claims.clock.note(b.Now, b.Begun)
	c.claims.hold(all)
	b.DecodeClaimed(c.runner.work, nil)
	c.runner.dispatch(c.quarantine.setAside(all))
	return gotOf(all, want)
}

// readClaims reads claimed rows into all.
func readClaims(b *message.Decoder, all *[]*claimed) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		reader := queue.Reader{Arena: &b.Arena}
		for rows.Next() {
			m := readClaim(pg.CurrentRow(rows), b, &reader)
			*all = append(*all, m)
			b.Add(&m.msg)
		}
		return rows.Err()
	}
}

func readClaim(r pg.Row, b *message.Decoder, reader *queue.Reader) *claimed {
	m := &claimed{decoder: b, renewed: b.Begun}
	reader.Read(r, &m.msg.Row)
	b.Read(r.Time(queue.ColumnNow))
	r = r[queue.ColumnMore:]
	m.rows, m.number = []time.Time{r.Time(0)}, int(r.Int(1))
	if !r.Null(2) {
		m.msg.CallOff(queue.CancelReason(r.Text(2)), nil)
	}
	died := r.Int(7)
	m.death = death{
		session: r.UUID(3), crashes: contention.Deaths{Counted: int(r.Int(4)), Alone: int(r.Int(5))},
		counted: died > 0, alone: died > 1,
	}
	m.found = int(r.Int(6))
	if len(r) > 8 {
		m.key = r.Text(8)
	}
	return m
}

// flight describes the last claim: when it was sent, how long it took, and how many handlers had ended when it was
// sent.
type flight struct {
	left  time.Time
	took  time.Duration
	ended int
}

// depart notes that a claim is sent, and estimates how many handlers will end until it returns: as many as have ended
// since the last claim was sent, in proportion to the time that the last claim took. For handlers that take minutes
// this is 0.
func (c *claimer) depart(now time.Time) {
	ended, last := c.claims.endedSoFar(), c.flight
	if between := now.Sub(last.left); between > 0 && last.took > 0 {
		c.ending = int(int64(ended-last.ended) * int64(last.took) / int64(between))
	}
	c.flight = flight{left: now, ended: ended}
}

func (c *claimer) arrive(now time.Time) { c.flight.took = now.Sub(c.flight.left) }
