package bus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/internal/watch"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// hub finds the workers of this process by the queue they consume. A wake-up is a nudge: one that is lost
// costs at most a poll interval. Safe for concurrent use.
type hub struct {
	mu        sync.Mutex
	pumps     map[int][]*pump         // by queue
	knobs     map[int][]*knobs        // by queue
	beats     map[int][]chan struct{} // of leased endpoints, by queue
	watches   []*leaseWatch           // of partitioned endpoints
	listening chan struct{}           // held by the one endpoint of the bus that listens for all
	views     *watch.Set              // of instances
}

func newHub(w *watch.Set) *hub {
	return &hub{views: w, pumps: map[int][]*pump{}, knobs: map[int][]*knobs{}, beats: map[int][]chan struct{}{},
		listening: make(chan struct{}, 1)}
}

func (h *hub) attach(queue int, p *pump, k *knobs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pumps[queue] = append(h.pumps[queue], p)
	h.knobs[queue] = append(h.knobs[queue], k)
}

func (h *hub) detach(queue int, p *pump, k *knobs) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pumps[queue] = slices.DeleteFunc(h.pumps[queue], func(q *pump) bool { return q == p })
	h.knobs[queue] = slices.DeleteFunc(h.knobs[queue], func(q *knobs) bool { return q == k })
}

// turned has the endpoints of this process that consume a queue look at their knob.
func (h *hub) turned(queue int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.knobs[queue] {
		k.nudge()
	}
}

// wake nudges the workers of this process, now or at a time by this process's clock. It tells whether one
// of them was idle, so that nobody else need be called.
func (h *hub) wake(queue int, at time.Time) (idle bool) {
	h.mu.Lock()
	pumps := slices.Clone(h.pumps[queue])
	h.mu.Unlock()
	if !at.After(time.Now()) {
		h.views.Sent(queue)
	}
	for _, p := range pumps {
		if !at.IsZero() && at.After(time.Now()) {
			p.wakeAt(at)
			idle = true
		} else if p.wake() {
			idle = true
		}
	}
	return idle
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, pumps := range h.pumps {
		for _, p := range pumps {
			p.wake()
		}
	}
	for _, knobs := range h.knobs {
		for _, k := range knobs {
			k.nudge()
		}
	}
}

// wakeQueue wakes whoever can handle what was just committed: a worker of this process, and when none is idle
// those of others. at is by this process's clock, zero is now.
func (b *Bus) wakeQueue(ctx context.Context, q *queue.Queue, at time.Time) {
	if !b.hub.wake(q.ID, at) && !at.After(time.Now()) {
		b.notifier.notify(ctx, q, 0)
	}
}

func (b *Bus) wakeAfterCommit(ctx context.Context, to []*queue.Queue, out saga.Outgoing) {
	at := out.Info.Due
	if out.Delay > 0 {
		at = time.Now().Add(out.Delay)
	}
	for _, q := range to {
		b.wakeQueue(ctx, q, at)
	}
}

// nudgeLater is for a transaction whose commit we do not see: a few nudges at growing distances. tx is its connection,
// or the *sql.Tx.
func (b *Bus) nudgeLater(ctx context.Context, tx any, to []*queue.Queue, out saga.Outgoing) {
	if out.Delay > 0 || out.Info.Due.After(time.Now()) {
		return // the poll is in time for it
	}
	if b.notifier.noted(tx, to) {
		return // InTx or InSQL will see the commit
	}
	for _, q := range to {
		for _, in := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			b.notifier.notify(ctx, q, in)
		}
	}
}

// notifier sends NOTIFY from a connection of its own, never inside a transaction that does anything else:
// Postgres commits transactions that notify one after another. What is asked for while one is on its way
// goes with the next. Safe for concurrent use.
type notifier struct {
	bus *Bus

	mu      sync.Mutex
	pending []nudge
	running bool
	inTx    map[any][]*queue.Queue // what the transactions of InTx have sent to
}

type nudge struct {
	queue *queue.Queue
	at    time.Time
}

const notifyGap = 5 * time.Millisecond

// notify asks for a nudge of every process that consumes q. The goroutine behind it ends as soon as nothing is left to
// do.
func (n *notifier) notify(ctx context.Context, q *queue.Queue, in time.Duration) {
	if n.bus.wakeup == PollOnly && in == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, nudge{queue: q, at: time.Now().Add(in)})
	if !n.running {
		n.running = true
		run.Detached(ctx, n.loop)
	}
}

// watch collects the queues that a transaction sends to, until watched takes them. tx is the connection of one of pgx,
// or a *sql.Tx.
func (n *notifier) watch(tx any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inTx == nil {
		n.inTx = map[any][]*queue.Queue{}
	}
	n.inTx[tx] = []*queue.Queue{}
}

func (n *notifier) watched(tx any) []*queue.Queue {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer delete(n.inTx, tx)
	return n.inTx[tx]
}

// noted adds queues to what a watched transaction sends to, and tells whether it is watched.
func (n *notifier) noted(tx any, to []*queue.Queue) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	sent, ok := n.inTx[tx]
	if !ok {
		return false
	}
	for _, q := range to {
		if !slices.Contains(sent, q) {
			sent = append(sent, q)
		}
	}
	n.inTx[tx] = sent
	return true
}

func (n *notifier) loop(ctx context.Context) {
	for {
		due, wait, more := n.next()
		if !more {
			return
		}
		if len(due) > 0 {
			n.send(ctx, due)
			wait = notifyGap
		}
		if run.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// next takes what is due, and tells how long until the rest is.
func (n *notifier) next() (due []*queue.Queue, wait time.Duration, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) == 0 {
		n.running = false
		return nil, 0, false
	}
	now := time.Now()
	wait = time.Second
	kept := n.pending[:0]
	for _, p := range n.pending {
		if p.at.After(now) {
			kept = append(kept, p)
			wait = min(wait, p.at.Sub(now))
		} else if !slices.Contains(due, p.queue) {
			due = append(due, p.queue)
		}
	}
	n.pending = kept
	return due, min(wait, notifyGap), true
}

func (n *notifier) send(ctx context.Context, due []*queue.Queue) {
	b := n.bus
	for _, q := range due {
		b.hub.wake(q.ID, time.Time{})
	}
	if b.wakeup == PollOnly {
		return
	}
	b.tell(ctx, notifyPayloads(due)...)
}

// payloadBytes is how long a payload may become: Postgres refuses those of 8,000 bytes.
const payloadBytes = 7900

func notifyPayload(q *queue.Queue) string { return strconv.Itoa(q.ID) }

// notifyPayloads lists the queues in as few payloads as possible.
func notifyPayloads(queues []*queue.Queue) (payloads []string) {
	var b strings.Builder
	for _, q := range queues {
		text := notifyPayload(q)
		if b.Len() > 0 && b.Len()+len(",")+len(text) > payloadBytes {
			payloads = append(payloads, b.String())
			b.Reset()
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text)
	}
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	return payloads
}

// listen wakes workers when other processes ask for it. One endpoint of the bus does it for all; when it ends,
// another takes over.
func (b *Bus) listen(ctx context.Context) error {
	select {
	case b.hub.listening <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-b.hub.listening }()
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := b.listenOnce(ctx, retry.Reset)
		if ctx.Err() != nil {
			return nil
		}
		b.calm.Warn("edda: listening for wake-ups was interrupted, polling goes on", "error", err)
		if run.Sleep(ctx, retry.NextBackOff()) != nil {
			return nil
		}
	}
	return nil
}

func (b *Bus) listenOnce(ctx context.Context, connected func()) error {
	conn, err := pg.Dial(ctx, b.pool.Config())
	if err != nil {
		return err
	}
	defer pg.HangUp(ctx, conn)
	if err := b.session.lock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{b.schema.Channel()}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer b.session.unlock(ctx)
	if err := b.session.locked(ctx); err != nil {
		return err
	}
	connected()
	b.hub.wakeAll() // what was missed while nobody listened
	b.hub.leasesChanged("")
	for {
		n, err := pg.Hear(ctx, conn)
		if err != nil {
			return err
		}
		for text := range strings.SplitSeq(n.Payload, ",") {
			if text == diedPayload {
				b.session.hear()
			} else {
				b.hub.heard(text)
			}
		}
	}
}
