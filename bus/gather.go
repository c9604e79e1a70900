package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
	"github.com/edda-go/edda/internal/run"
	"github.com/jackc/pgx/v5"
)

const (
	gatherRows  = 1000            // in one transaction
	gatherEvery = 2 * time.Second // from partitions of a former, larger number
)

// Gather moves everything that waits in the partitions back to the endpoint's own queue, timeouts included, and forgets
// how many partitions there are. After it the endpoint can be installed with another number of them, or run as a plain
// Endpoint. It returns how many messages it moved.
//
// All processes of the endpoint must have stopped: while one of them holds a lease, Gather fails and has done nothing.
// It works in small transactions, and may be called again when it was interrupted; until it is done the old number
// stands. It needs the rights of Install.
func (p *Partitioned) Gather(ctx context.Context) (messages int, err error) {
	if messages, err = p.gather(ctx); err != nil {
		return messages, fmt.Errorf("gather the partitions of %s: %w", p.name, err)
	}
	return messages, nil
}

func (p *Partitioned) gather(ctx context.Context) (messages int, err error) {
	b := p.bus
	if err := p.checkAlone(ctx); err != nil {
		return 0, err
	}
	known, err := b.routes.Reload(ctx, b.pool)
	if err != nil {
		return 0, err
	}
	for _, q := range known.Partitions(p.name, 0) {
		for n := gatherRows; n == gatherRows; messages += n {
			if n, err = p.gatherSome(ctx, b.pool, route{from: q, to: known.Endpoints[p.name]}); err != nil {
				return messages, err
			}
		}
	}
	if err := p.checkAlone(ctx); err != nil { // one that started meanwhile found the old number
		return messages, err
	}
	if _, err := b.pool.Exec(ctx, b.sql.Get("forget_partitions"), queue.PartitionSetting(p.name)); err != nil {
		return messages, fmt.Errorf("forget the number of partitions: %w", pg.Explain(err))
	}
	return messages, nil
}

// checkAlone is an error while a process runs the endpoint.
func (p *Partitioned) checkAlone(ctx context.Context) error {
	all, err := p.bus.leases.Under(ctx, p.bus.pool, p.leaseName(""))
	if err != nil {
		return pg.Explain(err)
	}
	for _, l := range all {
		if l.Held() {
			return fmt.Errorf("a process runs it and has the lease %s: stop them all, or wait %v if it died", l.Name,
				l.Left.Round(time.Second))
		}
	}
	return nil
}

func (p *Partitioned) gatherSome(ctx context.Context, db lease.DB, r route) (n int, err error) {
	if err := db.QueryRow(ctx, r.from.To(r.to, "gather"), gatherRows).Scan(&n); err != nil {
		return 0, fmt.Errorf("move messages from %s to %s: %w", r.from.Endpoint, r.to.Endpoint, pg.Explain(err))
	}
	return n, nil
}

// gatherLate moves messages that still arrive in partitions of a former, larger number: answers to what their sagas had
// asked. The distributor does it, beside its batches.
func (p *Partitioned) gatherLate(ctx context.Context, t lease.Term) error {
	b := p.bus
	for run.Sleep(ctx, run.Jitter(gatherEvery)) == nil {
		known, err := b.routes.Get(ctx, b.pool)
		if err == nil {
			for _, q := range known.Partitions(p.name, len(p.posts)) {
				err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
					if err := b.leases.Guard(ctx, tx, t); err != nil {
						return err
					}
					_, err := p.gatherSome(ctx, tx, route{from: q, to: known.Endpoints[p.name]})
					return err
				})
			}
		}
		if err != nil && ctx.Err() == nil {
			// next time
			b.log.Debug("edda: late messages of former partitions were not moved", "endpoint", p.name, "error", err)
		}
	}
	return nil
}
