package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/limit"
)

// permits is the cached state of the limit of an endpoint in this process.
type permits struct {
	limited atomic.Bool  // there is a limit; once true it stays true
	spoken  atomic.Bool  // the program's number is declared
	warned  atomic.Int64 // the last limit in force that differed from the program's and was logged, or 0
	changed run.Nudge    // the limit has changed, or a slot is free
}

// known returns the limit for the engines.
func (p *permits) known(store *limit.Store) limit.Known {
	return limit.Known{Store: store, Set: &p.limited, Changed: p.changed}
}

// findLimit declares the endpoint's limit if the program has one. It records whether a limit exists.
//
// A process declares its number once: during a deploy, health checks may call Check of old and new programs, which
// must not change the limit in turns.
func (e *Endpoint) findLimit(ctx context.Context) error {
	limits, ours := e.bus.tables.limits, e.options.ClusterConcurrency
	if ours == 0 {
		return e.lookForLimit(ctx)
	}
	if !e.permits.spoken.Load() {
		if _, err := limits.Declare(ctx, e.bus.pool.Writing(), e.name, ours); err != nil {
			return pgerr.Explain(err)
		}
		e.permits.spoken.Store(true)
		e.permits.limited.Store(true)
	}
	info, err := limits.Get(ctx, e.bus.pool, e.name)
	if err != nil {
		return pgerr.Explain(err)
	}
	if info.Operated {
		e.compareLimit(info.Slots)
	}
	return nil
}

// compareLimit logs a warning, once for each number, if an operator's limit is in force and differs from the program's.
func (e *Endpoint) compareLimit(inForce int) {
	ours := e.options.ClusterConcurrency
	if inForce == ours || e.permits.warned.Swap(int64(inForce)) == int64(inForce) {
		return
	}
	e.bus.log.Warn("edda: the endpoint's limit differs from its ClusterConcurrency", "endpoint", e.name,
		"limit", inForce, "cluster_concurrency", ours,
		"remedy", "edda limit reset "+e.name)
}

func (e *Endpoint) lookForLimit(ctx context.Context) error {
	found, err := e.bus.tables.limits.Exists(ctx, e.bus.pool, e.name)
	if err != nil {
		return fmt.Errorf("find its limit: %w", pgerr.Explain(err))
	}
	if found && !e.permits.limited.Swap(true) && e.options.Ordered != Unordered {
		e.bus.log.Warn("edda: the limit of an ordered endpoint has no effect", "endpoint", e.name)
	}
	return nil
}

// lookEvery bounds how long an endpoint without a limit continues after the first limit was set.
const lookEvery = time.Second

// awaitLimit checks for a first limit about once a second, so that no batch has to. It returns once there is a limit:
// an endpoint that has one always keeps one. endpoint that has a limit always keeps one.
func (e *Endpoint) awaitLimit(ctx context.Context) error {
	for !e.permits.limited.Load() {
		if run.Wait(ctx, run.Jitter(lookEvery), e.permits.changed) == run.Ended {
			return nil
		}
		if err := e.lookForLimit(ctx); err != nil && ctx.Err() == nil {
			e.bus.log.Debug("edda: the limit was not read", "endpoint", e.name, "error", err) // tried again later
		}
	}
	return nil
}
