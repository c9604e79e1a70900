package wake

import (
	"context"
	_ "embed"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/jackc/pgx/v5"
)

//go:embed wake.sql
var statements string

// Notifier wakes the loops of this process, and by NOTIFY those of others. A notification has a transaction of its
// own, because Postgres commits transactions that notify one at a time. Requests that come while one is in flight go
// with the next. Safe for concurrent use.
type Notifier struct {
	pool     *pg.Pool
	hub      *Hub
	log      *slog.Logger
	sql      string
	channel  string
	pollOnly bool

	mu      sync.Mutex // guards the fields below
	pending []wakeUp
	running bool
	inTx    map[any][]int // queues to which watched transactions have sent
}

type wakeUp struct {
	queue int
	at    time.Time
}

const (
	gap         = 5 * time.Millisecond // between two notifications
	sendTimeout = time.Second
)

// NewNotifier returns a Notifier over pool. With pollOnly no process listens: it only wakes this process.
func NewNotifier(pool *pg.Pool, schema pg.Schema, hub *Hub, log *slog.Logger, pollOnly bool) *Notifier {
	return &Notifier{
		pool: pool, hub: hub, log: log, sql: pg.Load(statements, schema).Get("notify"),
		channel: schema.Channel(), pollOnly: pollOnly,
	}
}

// Wake wakes a loop for messages that were just committed: one of this process, or of others if no loop is idle here.
// at is by this process's clock, zero means now.
func (n *Notifier) Wake(ctx context.Context, queue int, at time.Time) {
	if !n.hub.Wake(queue, at) && !at.After(time.Now()) {
		n.later(ctx, queue, 0)
	}
}

// WakeAll wakes the loops of this process and of all others, and returns when that is done.
func (n *Notifier) WakeAll(ctx context.Context, queues []int) {
	for _, q := range queues {
		n.hub.Wake(q, time.Time{})
	}
	n.Send(ctx, payloads(queues)...)
}

// WakeLater is for a transaction whose commit this process cannot observe: it wakes several times at growing
// intervals, unless the transaction is collected. tx is its connection, or the *sql.Tx.
func (n *Notifier) WakeLater(ctx context.Context, tx any, queues []int) {
	if n.collected(tx, queues) {
		return
	}
	for _, q := range queues {
		for _, in := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			n.later(ctx, q, in)
		}
	}
}

// Queue queues a notification into a transaction of the caller's.
func (n *Notifier) Queue(pipeline *pgx.Batch, payload string) {
	pipeline.Queue(n.sql, n.channel, payload)
}

// Send notifies other processes, and returns when that is done. Others may listen even if this process does not.
func (n *Notifier) Send(ctx context.Context, payloads ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	pipeline := &pgx.Batch{}
	for _, payload := range payloads {
		n.Queue(pipeline, payload)
	}
	if err := n.pool.SendBatch(ctx, pipeline).Close(); err != nil {
		n.log.Debug("edda: notify failed", "error", err) // the poll finds the messages
	}
}

// Collect returns the queues to which the transaction tx sends while fn runs. tx is its connection, or the *sql.Tx.
func (n *Notifier) Collect(tx any, fn func() error) (queues []int, err error) {
	n.mu.Lock()
	if n.inTx == nil {
		n.inTx = map[any][]int{}
	}
	n.inTx[tx] = []int{}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		queues = n.inTx[tx]
		delete(n.inTx, tx)
	}()
	return nil, fn()
}

// Collecting returns how many transactions are collected now.
func (n *Notifier) Collecting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.inTx)
}

// collected adds queues to a transaction that is collected. It reports whether it is.
func (n *Notifier) collected(tx any, queues []int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	sent, ok := n.inTx[tx]
	if !ok {
		return false
	}
	for _, q := range queues {
		if !slices.Contains(sent, q) {
			sent = append(sent, q)
		}
	}
	n.inTx[tx] = sent
	return true
}

// later wakes the consumers of a queue in all processes after a time. Its goroutine ends when nothing is left to do.
func (n *Notifier) later(ctx context.Context, queue int, in time.Duration) {
	if n.pollOnly && in == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, wakeUp{queue: queue, at: time.Now().Add(in)})
	if !n.running {
		n.running = true
		run.Detached(ctx, n.loop)
	}
}

func (n *Notifier) loop(ctx context.Context) {
	for {
		due, wait, more := n.next()
		if !more {
			return
		}
		if len(due) > 0 {
			n.wakeDue(ctx, due)
			wait = gap
		}
		if run.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (n *Notifier) wakeDue(ctx context.Context, due []int) {
	if !n.pollOnly {
		n.WakeAll(ctx, due)
		return
	}
	for _, q := range due {
		n.hub.Wake(q, time.Time{})
	}
}

// next removes the due queues, and returns how long to wait for the others.
func (n *Notifier) next() (due []int, wait time.Duration, more bool) {
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
	return due, min(wait, gap), true
}

// payloadBytes is the largest size of a payload: Postgres refuses 8,000 bytes.
const payloadBytes = 7900

// Payload returns the payload that names a queue with messages.
func Payload(queue int) string { return strconv.Itoa(queue) }

// payloads distributes the queues over as few payloads as possible.
func payloads(queues []int) (all []string) {
	var b strings.Builder
	for _, q := range queues {
		text := Payload(q)
		if b.Len() > 0 && b.Len()+len(",")+len(text) > payloadBytes {
			all = append(all, b.String())
			b.Reset()
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text)
	}
	if b.Len() > 0 {
		all = append(all, b.String())
	}
	return all
}
