package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// batchRuns is how many runs one pass of a server dispatches at most. A soft cap may be exceeded by this number, for
// each server but one.
const batchRuns = 100

// candidate is a run that was queued when it was read. A different server may have taken it since.
type candidate struct {
	id     saga.ID
	group  int32
	strict bool // its group's cap is counted under a lock
	ready  time.Time
}

// pick returns the runs that this server tries next, in their order: no run of a paused group, and no more runs of a
// group, nor in all, than the cap has room for now. It leaves out runs that a different server has in hand.
func (d *dispatcher) pick(ctx context.Context) (picked []candidate, err error) {
	room, err := d.room(ctx)
	if err == nil && room > 0 {
		picked, err = d.candidates(ctx, room)
	}
	if err != nil {
		return nil, fmt.Errorf("look for runs to dispatch: %w", err)
	}
	return share(picked, room), nil
}

// room returns how many runs this pass may dispatch in all.
func (d *dispatcher) room(ctx context.Context) (room int, err error) {
	most := d.options.MaxActive
	if most == 0 {
		return batchRuns, nil
	}
	b, active := &pgx.Batch{}, 0
	d.queueOpen(b, cycleLimits)
	b.Queue(d.sql.Get("active"), most).QueryRow(func(row pgx.Row) error { return row.Scan(&active) })
	if err := d.ask(ctx, b); err != nil {
		return 0, err
	}
	return min(batchRuns, max(0, most-active)), nil
}

func (d *dispatcher) candidates(ctx context.Context, room int) (all []candidate, err error) {
	b := &pgx.Batch{}
	d.queueOpen(b, cycleLimits)
	b.Queue(d.sql.Get("unsafe"))
	b.Queue(d.sql.Get("pick"), room).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c candidate, err error) {
			err = row.Scan(&c.id, &c.group, &c.strict, &c.ready)
			return c, err
		})
		return err
	})
	err = d.ask(ctx, b)
	return all, err
}

// share divides the room. all are in order: group priority, run priority, ready. Half of the room is divided equally
// among the groups, so that no group waits forever behind the others; the rest goes by the order. If there are more
// groups than room, the groups come first whose first run has been ready longest. The result is in the order of all.
func share(all []candidate, room int) []candidate {
	if len(all) <= room {
		return all
	}
	groups := map[int32]int{}
	for _, c := range all {
		groups[c.group]++
	}
	each := max(1, room/2/len(groups))
	var sure []int // indexes in all
	clear(groups)
	for i, c := range all {
		if groups[c.group]++; groups[c.group] <= each {
			sure = append(sure, i)
		}
	}
	if len(sure) > room {
		slices.SortStableFunc(sure, func(a, b int) int { return cmp.Or(all[a].ready.Compare(all[b].ready), a-b) })
		sure = sure[:room]
	}
	taken := make([]bool, len(all))
	for _, i := range sure {
		taken[i] = true
	}
	return fill(all, taken, room-len(sure))
}

// fill adds up to more candidates in order.
func fill(all []candidate, taken []bool, more int) (picked []candidate) {
	for i, c := range all {
		if !taken[i] && more > 0 {
			taken[i] = true
			more--
		}
		if taken[i] {
			picked = append(picked, c)
		}
	}
	return picked
}

// basket holds the runs that the dispatchers of this process share in one pass. Safe for concurrent use.
type basket struct {
	mu    sync.Mutex
	rest  []candidate
	share int // runs that one dispatcher takes at a time
}

func newBasket(all []candidate, dispatchers int) *basket {
	return &basket{rest: all, share: min(mostTogether, (len(all)+dispatchers-1)/max(1, dispatchers))}
}

func (b *basket) take() (taken []candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(b.share, len(b.rest))
	taken, b.rest = b.rest[:n:n], b.rest[n:]
	return taken
}

// putBack returns runs that were not dispatched in time; they are next.
func (b *basket) putBack(rest []candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = append(slices.Clone(rest), b.rest...)
	b.share = 1 // this Sender is slow: other dispatchers of this pass can take the runs
}
