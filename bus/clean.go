package bus

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/base/snapshot"
	"github.com/edda-go/edda/internal/engine/membership"
	"github.com/edda-go/edda/internal/store/audit"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/jackc/pgx/v5"
)

const (
	cleanEvery = 10 * time.Minute
	// after one process of the cluster has begun to clean, the other processes wait this long
	cleanTurn = cleanEvery / 2
	cleanFor  = cleanEvery // a clean-up that takes longer is ended
	// deleted by one statement; each reads again the index entries that earlier statements have left dead
	cleanRows     = 10_000
	cleanQueues   = 100 // queues that one statement reads and locks
	cleanLease    = "clean"
	sentIDKept    = 7 * 24 * time.Hour
	discardedKept = 30 * 24 * time.Hour
	ticketKept    = time.Minute // after it expired, in case its holder was only slow
	jobsKept      = 30 * 24 * time.Hour
)

// cleaner deletes old rows for all endpoints of the process, and searches for transactions that keep dead rows.
type cleaner struct {
	bus    *Bus
	pins   *snapshot.Look
	holder string        // the name of this process in the lease for cleaning
	look   time.Duration // between two searches for a pin; tests shorten it
	loops  *run.Shared

	// Only the loops access the fields below.
	due    time.Time    // when the next clean-up begins
	pin    snapshot.Pin // the result of the last search; its Kind is "" if no pin does harm
	pinned time.Time    // when it was first found
}

func newCleaner(b *Bus) *cleaner {
	c := &cleaner{bus: b, pins: snapshot.New(b.schema), holder: b.tables.history.Host, look: pinEvery}
	c.loops = run.NewShared(c.cleanInTurns, c.watchPin, c.boundHistory)
	return c
}

// Clean deletes old rows about every ten minutes, and rotates the rings of the inbox, the outbox and the history,
// until ctx ends. It is for programs that have a bus and no endpoint; endpoints clean while they run. One loop cleans
// for the whole process, and the processes of a cluster take turns. Every few seconds each process searches for
// transactions that keep Postgres from removing dead rows, and one process logs a warning: see operate.Pin. Clean
// always returns nil. It is safe for concurrent use.
//
// It deletes the ids that callers gave, the records of discarded messages, old counters, audit entries, jobs of dead
// letters that have ended, and the records of processes that crashed. Dead letters are kept until an operator retries
// or discards them.
// ended, and notes about processes that crashed. Dead letters are kept until an operator retries or discards them.
func (b *Bus) Clean(ctx context.Context) error {
	defer b.cleaner.loops.Start(ctx)()
	<-ctx.Done()
	return nil
}

// join registers that this process consumes a queue, and runs the loops that all endpoints and relays of the process
// share, until leave is called.
func (b *Bus) join(ctx context.Context, queue int, left func() int) (leave func(), err error) {
	end, err := b.session.Join(ctx, queue, left)
	if err != nil {
		return nil, err
	}
	stop := b.cleaner.loops.Start(ctx)
	return func() { stop(); end() }, nil
}

func (c *cleaner) cleanInTurns(ctx context.Context) error {
	for {
		if c.due.IsZero() {
			c.due = time.Now().Add(run.Jitter(cleanEvery))
		}
		if run.Sleep(ctx, time.Until(c.due)) != nil {
			return nil
		}
		c.due = time.Time{}
		c.cleanInTurn(ctx)
	}
}

// cleanInTurn cleans unless a different process has done so recently. It keeps the lease until it expires, so that the
// other processes wait that long. Deleting rows that are gone is no error, so a clean-up that takes longer than the
// lease may overlap the next one.
func (c *cleaner) cleanInTurn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanFor) // bounds the wait for a server that no longer answers
	defer cancel()
	_, ours, err := c.bus.tables.leases.Acquire(ctx, c.bus.pool.Writing(),
		lease.Bid{Name: cleanLease, Holder: c.holder, Lease: cleanTurn})
	switch {
	case err != nil && ctx.Err() == nil:
		c.bus.calm.Warn("edda: old rows were not deleted", "table", "lease", "error", err)
	case ours:
		c.cleanOnce(ctx)
	}
}

func (c *cleaner) cleanOnce(ctx context.Context) {
	c.prune(ctx, c.chores(ctx))
	for _, name := range []ring.Name{ring.Inbox, ring.Outbox, ring.History} {
		c.rotate(ctx, name)
	}
}

func (c *cleaner) rotate(ctx context.Context, name ring.Name) {
	if _, err := c.bus.tables.rings.Rotate(ctx, c.bus.pool, name); err != nil && ctx.Err() == nil {
		c.bus.calm.Warn("edda: old rows were not deleted", "table", string(name), "error", err)
	}
}

// chore deletes old rows of one table, at most cleanRows at a time.
type chore struct {
	table string
	piece func() (deleted int64, err error)
}

func (c *cleaner) chores(ctx context.Context) []chore {
	pool, t, session := c.bus.pool, &c.bus.tables, c.bus.session.SQL
	execute := func(sql string, args ...any) func() (int64, error) {
		return func() (int64, error) {
			tag, err := pool.Exec(ctx, sql, args...)
			return tag.RowsAffected(), err
		}
	}
	kept := membership.Kept.Microseconds()
	chores := []chore{
		{"sent_id", func() (int64, error) { return t.sent.Prune(ctx, pool, sentIDKept, cleanRows) }},
		{"ticket", func() (int64, error) { return t.limits.Prune(ctx, pool, ticketKept, cleanRows) }},
		{"discarded", func() (int64, error) { return t.letters.Prune(ctx, pool, discardedKept, cleanRows) }},
		{"saga_counter", func() (int64, error) { return t.counters.Prune(ctx, pool, countersKept, cleanRows) }},
		{"dead_letter_job", func() (int64, error) { return t.letters.PruneJobs(ctx, pool, jobsKept, cleanRows) }},
		{"audit", func() (int64, error) { return t.audit.Prune(ctx, pool, audit.Kept, cleanRows) }},
		{"session", execute(session.Get("prune_sessions"), kept, cleanRows)},
		{"in_flight", execute(session.Get("prune_batches"), kept, cleanRows)},
	}
	for some := range slices.Chunk(c.journalQueues(ctx), cleanQueues) {
		chores = append(chores, chore{"suspect", execute(session.Get("prune_journal"), some, cleanRows)})
	}
	return chores
}

// journalQueues returns the queues with messages in the in-flight journal. Usually the list is empty.
func (c *cleaner) journalQueues(ctx context.Context) []int32 {
	rows, err := c.bus.pool.Query(ctx, c.bus.session.SQL.Get("journal_queues"))
	if err == nil {
		var queues []int32
		if queues, err = pgx.CollectRows(rows, pgx.RowTo[int32]); err == nil {
			return queues
		}
	}
	if ctx.Err() == nil {
		c.bus.calm.Warn("edda: old rows were not deleted", "table", "suspect", "error", err)
	}
	return nil
}

// prune does a piece of each chore in turn, until every chore has had a piece that was not full. After a full piece
// it pauses for as long as the piece took, so a clean-up takes at most half of a connection's time, however many rows
// there are to delete.
func (c *cleaner) prune(ctx context.Context, left []chore) {
	for len(left) > 0 && ctx.Err() == nil {
		left = slices.DeleteFunc(left, func(one chore) bool { return !c.prunePiece(ctx, one) })
	}
}

// prunePiece reports whether there may be more to delete.
func (c *cleaner) prunePiece(ctx context.Context, of chore) (more bool) {
	begun := time.Now()
	deleted, err := of.piece()
	if err != nil && ctx.Err() == nil {
		c.bus.calm.Warn("edda: old rows were not deleted", "table", of.table, "error", err)
	}
	return err == nil && deleted >= cleanRows && run.Sleep(ctx, time.Since(begun)) == nil
}

const (
	historyEvery = time.Minute
	historyLease = "history"
)

// boundHistory checks once a minute whether the history has grown to its limit. Processes take turns.
func (c *cleaner) boundHistory(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(historyEvery)) == nil {
		_, ours, err := c.bus.tables.leases.Acquire(ctx, c.bus.pool.Writing(),
			lease.Bid{Name: historyLease, Holder: c.holder, Lease: historyEvery / 2})
		if ours || err != nil {
			c.rotate(ctx, ring.History)
		}
	}
	return nil
}

const (
	pinEvery = 4 * time.Second
	pinLease = "pin"
	pinTurn  = time.Minute // after one process of the cluster has warned of a pin, all processes wait this long
)

// watchPin searches for a pin every few seconds, and warns of a pin within 30 s after takes begin to suffer.
func (c *cleaner) watchPin(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(c.look)) == nil {
		c.lookForPin(ctx)
	}
	return nil
}

// lookForPin warns of a pin that has been found at every search for half of snapshot.Long and is as old as
// snapshot.Long. All processes of a cluster find it, and the holder of a lease logs it. The age of a transaction alone
// proves nothing: its snapshot may be new.
func (c *cleaner) lookForPin(ctx context.Context) {
	p, suffers, err := c.pins.Find(ctx, c.bus.pool)
	if err != nil {
		if ctx.Err() == nil {
			c.bus.calm.Warn("edda: the search for a pinned snapshot failed", "error", err)
		}
		return
	}
	if !suffers || p.Kind != c.pin.Kind || p.Name != c.pin.Name || p.XID != c.pin.XID {
		c.pin, c.pinned = p, time.Now()
		return
	}
	if seen := time.Since(c.pinned); seen < snapshot.Long/2 || seen < snapshot.Long && !p.Old() {
		return
	}
	bid := lease.Bid{Name: pinLease, Holder: c.holder, Lease: pinTurn}
	_, ours, err := c.bus.tables.leases.Acquire(ctx, c.bus.pool.Writing(), bid)
	if ours || err != nil {
		held := max(p.Held, time.Since(c.pinned)).Round(time.Second)
		c.bus.log.Warn("edda: dead rows cannot be removed", "holder", p.Holder(), "held", held,
			"transactions", p.Transactions, "table", p.Table, "endpoint", p.Endpoint, "dead_rows", p.DeadRows,
			"remedy", p.Remedy())
	}
}
