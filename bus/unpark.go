package bus

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const unparkRows = 1000 // moved by one transaction

// unpark is for an endpoint without order, whose queue an ordered program may have had before, or has at the same time
// during a deploy. It moves what that program has parked back into the queue, as soon as no process has the lane. It
// looks at the beginning, and then more and more seldom.
func (e *Endpoint) unpark(ctx context.Context) error {
	for pause := e.options.Poll; ; pause = min(2*pause, cleanEvery) {
		if err := e.unparkOnce(ctx); err != nil && ctx.Err() == nil {
			e.bus.calm.Warn("edda: parked messages were not moved back", "endpoint", e.name, "error", err)
		}
		if run.Sleep(ctx, run.Jitter(pause)) != nil {
			return nil
		}
	}
}

func (e *Endpoint) unparkOnce(ctx context.Context) error {
	total := 0
	for moved := unparkRows; moved == unparkRows; total += moved {
		pipeline := &pgx.Batch{}
		pipeline.Queue(queue.Begin)
		pipeline.Queue(queue.Open())
		pipeline.Queue(e.queue.SQL("unpark"), e.queue.ID,
			unparkRows).QueryRow(func(row pgx.Row) error { return row.Scan(&moved) })
		pipeline.Queue("commit")
		if err := e.bus.pool.SendBatch(ctx, pipeline).Close(); err != nil {
			return fmt.Errorf("move parked messages: %w", pg.Explain(err))
		}
	}
	if total > 0 {
		e.bus.log.Info("edda: parked messages were moved back", "endpoint", e.name, "messages", total)
		e.alarm.Wake()
	}
	return nil
}
