package bus

import (
	"context"
	"time"

	"github.com/edda-go/edda/internal/counters"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
)

const (
	countersEvery  = 10 * time.Second
	countersWithin = 2 * time.Second // a write of them
	countersKept   = 14 * 24 * time.Hour
)

// writeCounters adds, every ten seconds or so, what the endpoint has counted to the table. An endpoint that did nothing
// writes nothing.
func (e *Endpoint) writeCounters(ctx context.Context) error {
	for run.Sleep(ctx, run.Jitter(countersEvery)) == nil {
		e.flushCounters(ctx)
	}
	return nil
}

// flushCounters is one write. What could not be written is forgotten: repeating it could count it twice.
func (e *Endpoint) flushCounters(ctx context.Context) {
	counted, since := e.counts.collect()
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countersWithin) // a drain wants them written
	defer cancel()
	err := e.bus.counters.Add(ctx, e.bus.pool, counters.Endpoint{
		Name: e.name, Concurrency: e.options.Concurrency, BatchMax: e.options.BatchMax, Since: since, Sagas: counted,
	})
	if err != nil {
		e.bus.calm.Warn("edda: counters were not written", "endpoint", e.name, "error", pg.Explain(err))
	}
}
