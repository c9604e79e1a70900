package partition

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
)

// balance keeps a process at its share of the partitions: it gives up excess partitions, and bids for free ones. It
// belongs to one goroutine; only the keepers run beside it.
type balance struct {
	*Consumer
	holder  string
	every   time.Duration
	rank    lease.Term // Name is "" without a rank
	keepers *run.Group
	kept    []kept // by partition
}

// kept is the running keeper of one partition.
type kept struct {
	end     context.CancelFunc // nil if no keeper runs
	leaving bool               // it was told to end
	ended   chan struct{}      // closed when it has ended
}

func (k *kept) gone() bool {
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

const (
	unevenEvery = 250 * time.Millisecond // how often a process checks while it does not have its share
	together    = 30 * time.Millisecond  // changes within this time are handled together
)

func newBalance(c *Consumer) *balance {
	return &balance{
		Consumer: c, holder: lease.Identity(c.Holder), every: min(5*time.Second, c.Lease/3),
		kept: make([]kept, len(c.partitions)),
	}
}

// run checks and acts until ctx ends. Then it returns the rank at once, so that others compute larger shares, and
// each partition when its work has ended. It returns an error that time does not cure.
func (b *balance) run(ctx context.Context) error {
	b.keepers = run.NewGroup(ctx)
	var err error
	for ctx.Err() == nil && err == nil {
		var wait time.Duration
		if wait, err = b.pass(ctx); err == nil && run.Wait(ctx, wait, b.changed) == run.Nudged {
			_ = run.Sleep(ctx, rand.N(together)) // the loop notices the end of ctx
		}
	}
	b.leave(ctx)
	b.keepers.Stop()
	_ = b.keepers.Wait() // their errors are already in ending
	return err
}

// pass checks once and acts, and returns how long to wait.
func (b *balance) pass(ctx context.Context) (wait time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, b.every)
	defer cancel()
	seen, err := b.look(limited)
	switch {
	case ctx.Err() != nil:
		return 0, nil
	case b.hopeless(err):
		return 0, err
	case pgerr.Incurable(err) || pgerr.ClassOf(err) == pgerr.Unprepared:
		return 0, pgerr.Explain(err)
	case err != nil:
		b.Log.Warn("edda: partitions were not checked", "endpoint", b.Group.Endpoint, "error", err)
		return run.Jitter(b.every), nil
	}
	return b.act(ctx, seen), nil
}

// view is the state of the endpoint's leases.
type view struct {
	processes, rank int
	taken           []bool
	expires         time.Duration // until the first term of a different process ends, unless it is renewed
}

// look renews the rank, or takes one, and reads the state of all leases.
func (b *balance) look(ctx context.Context) (view, error) {
	leases := b.Group.Leases
	if b.rank.Name != "" {
		answer, err := leases.Renew(ctx, b.line, b.rank, b.Lease)
		if err != nil {
			return view{}, err
		}
		if answer == lease.Lost {
			b.rank = lease.Term{}
		}
	}
	all, err := leases.Under(ctx, b.line, b.Group.Lease(""))
	if err != nil {
		return view{}, err
	}
	if b.rank.Name == "" {
		if err := b.takeRank(ctx, all); err != nil {
			return view{}, err
		}
	}
	return b.read(all), nil
}

const rankPrefix = "rank/"

// takeRank bids for the lowest free rank. A process that loses the bid tries again soon. A process with a different
// number of partitions must not be counted: the others would leave partitions to it that it does not have.
func (b *balance) takeRank(ctx context.Context, all []lease.Standing) error {
	held := map[string]bool{}
	for _, l := range all {
		held[l.Name] = l.Held()
	}
	n := 0
	for held[b.Group.Lease(rankPrefix+strconv.Itoa(n))] {
		n++
	}
	name := b.Group.Lease(rankPrefix + strconv.Itoa(n))
	t, ok, err := b.Group.Leases.Acquire(ctx, b.line, lease.Bid{Name: name, Holder: b.holder, Lease: b.Lease})
	if err != nil || !ok {
		return err
	}
	b.rank = t // leave returns it
	if err := b.Group.agree(ctx); err != nil {
		return err
	}
	b.Announce(ctx, lease.WakePrefix+name)
	return nil
}

func (b *balance) read(all []lease.Standing) view {
	v := view{taken: make([]bool, len(b.partitions)), expires: b.every}
	place := map[string]int{}
	for n, q := range b.Partitions {
		place[b.Group.Lease(q.Endpoint)] = n
	}
	own := b.rankNumber(b.rank.Name)
	for _, l := range all {
		if !l.Held() {
			continue
		}
		if n, ok := place[l.Name]; ok {
			v.taken[n] = true
		}
		if number := b.rankNumber(l.Name); number >= 0 && l.Name != b.rank.Name {
			v.processes++
			if number < own {
				v.rank++
			}
		}
		v.expires = min(v.expires, l.Left+together)
	}
	if b.rank.Name != "" {
		v.processes++
	}
	return v
}

// rankNumber returns the number of a rank's lease, or -1 if the lease is not a rank.
func (b *balance) rankNumber(name string) int {
	text, ok := strings.CutPrefix(name, b.Group.Lease(rankPrefix))
	number, err := strconv.Atoi(text)
	if !ok || err != nil {
		return -1
	}
	return number
}

// act starts and ends keepers. It returns when to check again: soon while this process does not have its share.
// Without a rank nothing changes: the process only checked a moment too late.
func (b *balance) act(ctx context.Context, v view) time.Duration {
	mine := b.roles()
	if b.rank.Name == "" {
		return run.Jitter(unevenEvery)
	}
	want := share(len(b.partitions), v.processes, v.rank)
	d := decide(want, v.rank*len(b.partitions)/v.processes, mine, v.taken)
	for _, n := range d.stop {
		b.kept[n].leaving = true
		b.kept[n].end()
	}
	for _, n := range d.start {
		b.start(ctx, n)
	}
	wait := b.every
	if len(d.start)+len(d.stop) > 0 || countOf(mine, working) != want {
		wait = unevenEvery
	}
	return min(run.Jitter(wait), v.expires)
}

// roles returns the current role of this process for each partition.
func (b *balance) roles() []role {
	mine := make([]role, len(b.partitions))
	for n := range mine {
		k := &b.kept[n]
		if k.end != nil && k.gone() {
			k.end()
			*k = kept{}
		}
		_, holds := b.partitions[n].Holding()
		switch {
		case k.end == nil:
		case k.leaving:
			mine[n] = leaving
		case holds:
			mine[n] = working
		default:
			mine[n] = bidding
		}
	}
	return mine
}

func countOf(roles []role, r role) (n int) {
	for _, one := range roles {
		if one == r {
			n++
		}
	}
	return n
}

// start runs the keeper of a partition until it is told to end, or ctx ends.
func (b *balance) start(ctx context.Context, n int) {
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	b.kept[n] = kept{end: end, ended: ended}
	b.keepers.Go(func(context.Context) error {
		defer close(ended)
		if err := b.partitions[n].Run(ctx); err != nil {
			b.ending.GiveUp(err)
		}
		return nil
	})
}

// leave returns the rank.
func (b *balance) leave(ctx context.Context) {
	if b.rank.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := b.Group.Leases.Release(ctx, b.line, b.rank); err != nil {
		b.Log.Debug("edda: a rank was not released", "endpoint", b.Group.Endpoint, "error", err) // it expires
	}
	b.rank = lease.Term{}
}
