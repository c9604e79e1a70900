package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// claimAll claims until taking ends.
func (l *leased) claimAll(taking context.Context) error {
	l.taking = taking
	retry := newPatience()
	for l.pump.await(taking) {
		for taking.Err() == nil {
			if !l.calm(taking) || !l.faceSuspects(taking) {
				return nil
			}
			want, ahead := l.wanted()
			if want == 0 {
				if !l.awaitRoom(taking) {
					return nil
				}
				continue
			}
			got, unseated, err := l.claim(taking, want)
			if err == nil {
				retry.Reset()
				l.bus.outage.Over()
				if !l.faceSuspects(taking) {
					return nil
				}
				if unseated {
					l.awaitSlot(taking)
					continue
				}
				if got < want-ahead {
					break
				}
				continue
			}
			if fatal(err) {
				return err
			}
			l.bus.calm.Warn("edda: a batch was rolled back", "endpoint", l.name, "error", err)
			if run.Sleep(taking, pause(err, retry)) != nil {
				return nil
			}
		}
	}
	return nil
}

// wanted is how many messages to claim. Of what is in hand so many will have ended when the claim comes back (ahead),
// and so many more can be begun while the next one is on its way. So a claim does not stand between handlers that take
// no time, and a message does not wait here for a slow one while another process could run it.
func (l *leased) wanted() (want, ahead int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) >= l.options.BatchMax {
		return 0, 0 // the loop that finishes is behind
	}
	if l.brake.slow.Load() && len(l.held) > 0 || l.most == 0 {
		return 0, 0 // one at a time while nothing succeeds, and none while the endpoint is paused
	}
	if l.options.Ordered != Unordered && len(l.held) >= l.options.BatchMax+l.options.Concurrency {
		return 0, 0 // they wait in their lanes
	}
	if ahead = l.ahead; l.brake.slow.Load() {
		ahead = 0
	}
	return max(0, min(l.atOnce()-l.running-len(l.waiting)+2*ahead, l.options.BatchMax)), 2 * ahead
}

func (l *leased) awaitRoom(ctx context.Context) bool {
	select {
	case <-l.room:
		return true
	case <-ctx.Done():
		return false
	}
}

// claim takes up to want messages that are due and starts their handlers. It returns how many there were, or that there
// was no slot for one.
//
// A shutdown does not interrupt it: a claim whose COMMIT was cancelled may stand, and nobody would know until its lease
// ends.
func (l *leased) claim(taking context.Context, want int) (got int, unseated bool, err error) {
	l.claiming.Lock()
	defer l.claiming.Unlock()
	// what comes later is not trusted
	ctx, cancel := context.WithTimeout(context.WithoutCancel(taking), min(commitTimeout, l.trustedFor()))
	defer cancel()
	l.depart(time.Now())
	defer func() { l.arrive(time.Now()) }()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("connect: %w", err)
	}
	defer conn.Release()
	switch {
	case l.options.Ordered != Unordered:
		got, err = l.claimInOrder(ctx, conn, want)
		return got, false, err
	case l.limited.Load():
		return l.claimSlotted(ctx, conn, want)
	}
	b := &batch{Endpoint: l.Endpoint}
	claims, err := l.take(ctx, conn, b, want)
	if err != nil {
		return 0, false, fmt.Errorf("claim: %w", explain(err))
	}
	if len(claims) == 0 {
		l.wakeForNext(ctx, conn.Conn())
		return 0, false, nil
	}
	l.beginAll(b, claims)
	return b.got(claims, want), false, nil
}

// beginAll starts the handlers of what was claimed.
func (l *leased) beginAll(b *batch, claims []*claimed) {
	l.hold(claims)
	b.prepareTurn(l.work)
	b.decodeClaimed()
	l.sort(l.setSuspectsAside(claims))
}

// take runs the statement. The transaction is over when it returns: nothing stays open while handlers run.
func (l *leased) take(ctx context.Context, conn *pgxpool.Conn, b *batch, want int) (claims []*claimed, err error) {
	pipeline := &pgx.Batch{}
	b.begun = time.Now()
	l.queueOpen(pipeline)
	l.queueClaim(pipeline, b, want, &claims)
	pipeline.Queue("commit")
	if err := conn.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, err
	}
	return claims, nil
}

func (l *leased) queueClaim(pipeline *pgx.Batch, b *batch, want int, claims *[]*claimed) {
	pipeline.Queue(l.queue.sql("claim"), want, l.options.Lease.Microseconds(), [16]byte(l.session()),
		l.options.BatchBytes, l.bus.session.trusts()).Query(func(rows pgx.Rows) error {
		*claims = collectClaims(rows, b)
		return rows.Err()
	})
}

// got is what a claim says of the queue. One that its bytes cut short has left messages behind, as one that got all it
// wanted.
func (b *batch) got(claims []*claimed, want int) int {
	if len(claims) < b.found {
		return want
	}
	return len(claims)
}

func collectClaims(rows pgx.Rows, b *batch) (claims []*claimed) {
	var kinds internKinds
	for rows.Next() {
		r := pg.CurrentRow(rows)
		c := &claimed{batch: b, renewed: b.begun}
		c.due, c.id, c.sent, c.firstFailed = r.Time(0), r.UUID(1), r.Time(2), r.Time(3)
		c.attempt, c.conflict, c.kind = int(r.Int(4)), int(r.Int(5)), kinds.text(r.Bytes(6))
		c.header, c.body = b.keep(r.Bytes(7)), b.keep(r.Bytes(8))
		b.now, c.rows, c.number = r.Time(9), []time.Time{r.Time(10)}, int(r.Int(11))
		if !r.Null(12) {
			c.callOff(cancelReason(r.Text(12)))
		}
		c.before, c.crashes = r.UUID(13), suspect{deaths: int(r.Int(14)), alone: int(r.Int(15))}
		b.found = int(r.Int(16))
		fell := r.Int(17)
		c.died, c.diedAlone = fell > 0, fell > 1
		if len(r) > 18 {
			c.key = r.Text(18)
		}
		claims = append(claims, c)
		b.messages = append(b.messages, &c.message)
	}
	return claims
}

// hold notes the claims.
func (l *leased) hold(claims []*claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock = reading{claims[0].batch.now, claims[0].batch.begun}
	for _, c := range claims {
		l.holdOne(c)
	}
}

// holdOne notes a claim. When this process still holds an earlier claim of the same row, that one is lost: its lease
// was over. The caller holds mu.
func (l *leased) holdOne(c *claimed) {
	if c.number > 1 {
		for old := range l.held {
			if old.id == c.id && old.number < c.number && old.due.Equal(c.due) {
				l.loseNow(old)
			}
		}
	}
	l.held[c] = struct{}{}
	l.watch(c)
}

// flight is what the last claim tells about the next: how long it was on its way, and how many handlers had ended when
// it left.
type flight struct {
	left    time.Time
	took    time.Duration
	handled int
}

// depart notes that a claim leaves, and estimates how many handlers will end while it is on its way: as many as ended
// since the last one left, for as long as that took. A handler of minutes makes that none.
func (l *leased) depart(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last
	if between := now.Sub(last.left); between > 0 && last.took > 0 {
		l.ahead = int(int64(l.handled-last.handled) * int64(last.took) / int64(between))
	}
	l.last = flight{left: now, handled: l.handled}
}

func (l *leased) arrive(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.took = now.Sub(l.last.left)
}

// giveBack returns claims to the queue as they were.
func (l *leased) giveBack(claims []*claimed) {
	for _, c := range claims {
		c.release = true
		l.end(c)
	}
}

// sort starts the handlers of what was claimed, and finishes what was decided without one. What comes after the end of
// taking goes back.
func (l *leased) sort(claims []*claimed) {
	start := make([]*claimed, 0, len(claims))
	for _, c := range claims {
		switch {
		case c.fate != left || c.consumer == nil:
			l.end(c)
		case l.taking.Err() != nil:
			c.release = true
			l.end(c)
		default:
			start = append(start, c)
		}
	}
	l.start(start)
}
