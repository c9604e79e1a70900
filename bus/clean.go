package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/outbox"
)

const (
	cleanEvery    = 10 * time.Minute
	cleanRows     = 1000 // deleted by one statement
	cleanMost     = 100  // statements in a row, so that a large table is cleaned over several turns
	sentIDKept    = 7 * 24 * time.Hour
	discardedKept = 30 * 24 * time.Hour
	ticketKept    = time.Minute // after it expired, for a holder that was only slow
	jobsKept      = 30 * 24 * time.Hour
)

// Clean is for programs that have a bus and no endpoint: an endpoint does the same while it runs. It deletes, now and then,
// what is kept for a time only, and turns the rings of the inbox and the outbox. It returns nil when ctx ends.
func (b *Bus) Clean(ctx context.Context) error { return b.clean(ctx) }

// clean deletes, now and then, what is kept for a time only: the ids that callers gave, the records of discarded messages,
// old counters, and the jobs of dead letters that have ended.
// Every process does it; nobody waits for anybody, and to delete what is gone is no error. Dead letters are kept
// until somebody acts.
func (b *Bus) clean(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(cleanEvery)) == nil {
		b.cleanOnce(ctx)
	}
	return nil
}

func (b *Bus) cleanOnce(ctx context.Context) {
	b.prune(ctx, "sent_id", func() (int64, error) { return b.ids.Prune(ctx, b.pool, sentIDKept, cleanRows) })
	b.prune(ctx, "ticket", func() (int64, error) { return b.limits.Prune(ctx, b.pool, ticketKept, cleanRows) })
	b.prune(ctx, "discarded", func() (int64, error) { return b.letters.Prune(ctx, b.pool, discardedKept, cleanRows) })
	b.prune(ctx, "saga_counter", func() (int64, error) { return b.pruneCounters(ctx) })
	b.prune(ctx, "dead_letter_job", func() (int64, error) { return b.letters.PruneJobs(ctx, b.pool, jobsKept, cleanRows) })
	b.session.prune(ctx)
	for _, ring := range []outbox.Ring{outbox.Inbox, outbox.Outbox} {
		if _, err := b.ids.Turn(ctx, b.pool, ring); err != nil && ctx.Err() == nil {
			b.log.Warn("edda: old rows were not deleted", "table", string(ring), "error", err)
		}
	}
}

// prune repeats one bounded deletion until there is nothing left of it to do.
func (b *Bus) prune(ctx context.Context, table string, once func() (int64, error)) {
	for range cleanMost {
		deleted, err := once()
		if err != nil && ctx.Err() == nil {
			b.log.Warn("edda: old rows were not deleted", "table", table, "error", err)
		}
		if err != nil || deleted < cleanRows {
			return
		}
	}
}
