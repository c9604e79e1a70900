package bus

import (
	"context"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pin"
	"github.com/edda-go/edda/internal/presence"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5"
)

const (
	cleanEvery = 10 * time.Minute
	// after one process of the cluster began to clean, the others leave it alone for so long
	cleanTurn = cleanEvery / 2
	cleanFor  = cleanEvery // a clean-up that finds no end is ended then
	// deleted by one statement; each walks again over what the others before it have left dead in the index
	cleanRows     = 10_000
	cleanQueues   = 100 // queues that one statement looks into, and locks
	cleanLease    = "clean"
	sentIDKept    = 7 * 24 * time.Hour
	discardedKept = 30 * 24 * time.Hour
	ticketKept    = time.Minute // after it expired, for a holder that was only slow
	jobsKept      = 30 * 24 * time.Hour
)

// cleaner cleans up for all that runs in the process, and looks for what makes cleaning vain.
type cleaner struct {
	pins   *pin.Look
	holder string        // the name of this process in the lease that says whose turn it is
	look   time.Duration // between two looks for a pin; tests shorten it
	loops  *run.Shared

	// What follows belongs to the loops.
	due    time.Time // of the next clean-up
	pin    pin.Pin   // that the last look found, if it did harm
	pinned time.Time // when that was found first
}

func newCleaner(b *Bus) (*cleaner, error) {
	pins, err := pin.New(b.schema)
	return &cleaner{pins: pins, holder: lease.Identity(""), look: pin.Long,
		loops: run.NewShared(b.cleanInTurns, b.watchPin)}, err
}

// Clean deletes what is kept for a time only, every ten minutes or so, and turns the rings of the inbox and the outbox.
// It is for programs that have a bus and no endpoint: endpoints do the same while they run. One loop cleans for the
// whole process, and the processes of a cluster take turns. Once a minute each looks for what keeps Postgres from
// removing dead rows, and one of them warns: see Pin. Clean returns nil when ctx ends.
//
// It deletes the ids that callers gave, the records of discarded messages, old counters, the jobs of dead letters that
// have ended, and what was noted about processes that died. Dead letters are kept until somebody acts.
func (b *Bus) Clean(ctx context.Context) error {
	defer b.cleaner.loops.Start(ctx)()
	<-ctx.Done()
	return nil
}

// join announces that this process consumes a queue, and runs what all endpoints and relays of the process share, until
// leave is called.
func (b *Bus) join(ctx context.Context, queue int) (leave func(), err error) {
	end, err := b.session.Join(ctx, queue)
	if err != nil {
		return nil, err
	}
	stop := b.cleaner.loops.Start(ctx)
	return func() { stop(); end() }, nil
}

func (b *Bus) cleanInTurns(ctx context.Context) error {
	c := b.cleaner
	for {
		if c.due.IsZero() {
			c.due = time.Now().Add(run.Jitter(cleanEvery))
		}
		if run.Sleep(ctx, time.Until(c.due)) != nil {
			return nil
		}
		c.due = time.Time{}
		b.cleanInTurn(ctx)
	}
}

// cleanInTurn cleans unless another process did so a short while ago. The lease is not given back: its time is the
// while. Deleting what is gone is no error, so a clean-up that takes longer than its turn may meet the next one.
func (b *Bus) cleanInTurn(ctx context.Context) {
	_, ours, err := b.leases.Acquire(ctx, b.pool.Writing(),
		lease.Bid{Name: cleanLease, Holder: b.cleaner.holder, Lease: cleanTurn})
	switch {
	case err != nil && ctx.Err() == nil:
		b.calm.Warn("edda: old rows were not deleted", "table", "lease", "error", err)
	case ours:
		b.cleanOnce(ctx)
	}
}

func (b *Bus) cleanOnce(ctx context.Context) {
	b.prune(ctx, b.chores(ctx))
	for _, ring := range []outbox.Ring{outbox.Inbox, outbox.Outbox} {
		if _, err := b.border.Store.Rotate(ctx, b.pool, ring); err != nil && ctx.Err() == nil {
			b.calm.Warn("edda: old rows were not deleted", "table", string(ring), "error", err)
		}
	}
}

// chore deletes old rows of one table, at most cleanRows at a time.
type chore struct {
	table string
	piece func() (deleted int64, err error)
}

func (b *Bus) chores(ctx context.Context) []chore {
	execute := func(sql string, args ...any) func() (int64, error) {
		return func() (int64, error) {
			tag, err := b.pool.Exec(ctx, sql, args...)
			return tag.RowsAffected(), err
		}
	}
	kept := presence.Kept.Microseconds()
	chores := []chore{
		{"sent_id", func() (int64, error) { return b.sent.Prune(ctx, b.pool, sentIDKept, cleanRows) }},
		{"ticket", func() (int64, error) { return b.limits.Prune(ctx, b.pool, ticketKept, cleanRows) }},
		{"discarded", func() (int64, error) { return b.letters.Prune(ctx, b.pool, discardedKept, cleanRows) }},
		{"saga_counter", func() (int64, error) { return b.counters.Prune(ctx, b.pool, countersKept, cleanRows) }},
		{"dead_letter_job", func() (int64, error) { return b.letters.PruneJobs(ctx, b.pool, jobsKept, cleanRows) }},
		{"session", execute(b.session.SQL.Get("prune_sessions"), kept, cleanRows)},
		{"in_flight", execute(b.session.SQL.Get("prune_batches"), kept, cleanRows)},
	}
	for some := range slices.Chunk(b.journalQueues(ctx), cleanQueues) {
		chores = append(chores, chore{"suspect", execute(b.session.SQL.Get("prune_journal"), some, cleanRows)})
	}
	return chores
}

// journalQueues are the queues with messages in the in-flight journal: hardly ever one.
func (b *Bus) journalQueues(ctx context.Context) []int32 {
	rows, err := b.pool.Query(ctx, b.session.SQL.Get("journal_queues"))
	if err == nil {
		var queues []int32
		if queues, err = pgx.CollectRows(rows, pgx.RowTo[int32]); err == nil {
			return queues
		}
	}
	if ctx.Err() == nil {
		b.calm.Warn("edda: old rows were not deleted", "table", "suspect", "error", err)
	}
	return nil
}

// prune does a piece of each chore in turn, until each has met one that was not full. After a full piece it rests for
// as long as that took: however much there is to delete, a clean-up takes no more than half of a connection's time.
func (b *Bus) prune(ctx context.Context, left []chore) {
	for begun := time.Now(); len(left) > 0 && time.Since(begun) < cleanFor; {
		left = slices.DeleteFunc(left, func(c chore) bool { return !b.prunePiece(ctx, c) })
	}
}

// prunePiece reports whether there may be more to delete.
func (b *Bus) prunePiece(ctx context.Context, c chore) (more bool) {
	begun := time.Now()
	deleted, err := c.piece()
	if err != nil && ctx.Err() == nil {
		b.calm.Warn("edda: old rows were not deleted", "table", c.table, "error", err)
	}
	return err == nil && deleted >= cleanRows && run.Sleep(ctx, time.Since(begun)) == nil
}
