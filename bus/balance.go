package bus

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/lease"
	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/run"
)

// Servers share the partitions of an endpoint without a leader. Each has a seat, a lease of the lowest number that is
// free, so that there are never more rows than there were servers at a time. Every server sees the same seats, and so
// computes the same shares: of 8 partitions and three servers, the two lowest seats have 3 and the last one 2. Who has
// more gives up, who has fewer bids for what is free. What they see may be old; then two bid for one partition, and one
// wins.

// share is how many of the partitions the server with that rank among so many has.
func share(partitions, servers, rank int) int {
	n := partitions / servers
	if rank < partitions%servers {
		n++
	}
	return n
}

// role is what a process is for a partition.
type role uint8

const (
	none    role = iota
	bidding      // its keeper runs, and does not hold the lease yet
	working      // it does
	leaving      // it is to end
)

// decision is what a process changes, by numbers of partitions.
type decision struct{ start, stop []int }

// decide brings the partitions that a process has or bids for to the number it is to have. taken are those that
// somebody holds. Processes begin to look at different places, from.
func decide(want, from int, mine []role, taken []bool) (d decision) {
	have := 0
	for n, r := range mine {
		if r == bidding && taken[n] { // somebody else was quicker
			d.stop = append(d.stop, n)
		} else if r == bidding || r == working {
			have++
		}
	}
	for _, giving := range []role{bidding, working} {
		for n := len(mine) - 1; n >= 0 && have > want; n-- {
			if mine[n] == giving && !slices.Contains(d.stop, n) {
				d.stop = append(d.stop, n)
				have--
			}
		}
	}
	for i := 0; i < len(mine) && have < want; i++ {
		if n := (from + i) % len(mine); mine[n] == none && !taken[n] {
			d.start = append(d.start, n)
			have++
		}
	}
	return d
}

// balance keeps a process at its share. It belongs to one goroutine; only the keepers run beside it.
type balance struct {
	*Partitioned
	every   time.Duration
	holder  string
	seat    lease.Term // Name is "" when there is none
	keepers *run.Group
	kept    []kept // by partition
}

// kept is the keeper of one partition.
type kept struct {
	end     context.CancelFunc // nil: none runs
	leaving bool               // it was told to end
	ended   chan struct{}      // closed when it has
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
	unsettled = 250 * time.Millisecond // how often a process looks that has not its share yet
	together  = 30 * time.Millisecond  // what happens within is looked at once
)

func newBalance(p *Partitioned) *balance {
	return &balance{
		Partitioned: p, every: min(5*time.Second, p.options.Lease/3), holder: lease.Identity(p.options.Server),
		kept: make([]kept, len(p.posts)),
	}
}

// run looks and acts until ctx ends. Then the seat is given back at once, so that others expect more, and each
// partition when its work has ended. It returns an error that no waiting cures.
func (b *balance) run(ctx context.Context) error {
	b.keepers = run.NewGroup(ctx)
	var err error
	for ctx.Err() == nil && err == nil {
		var wait time.Duration
		if wait, err = b.turn(ctx); err == nil {
			b.pause(ctx, wait)
		}
	}
	b.leave(ctx)
	b.keepers.Stop()
	_ = b.keepers.Wait() // their errors went to giveUp
	return err
}

// pause waits until it is time to look again, or something has changed.
func (b *balance) pause(ctx context.Context, wait time.Duration) {
	if run.Wait(ctx, wait, b.changed) == run.Nudged {
		_ = run.Sleep(ctx, rand.N(together)) // the loop sees the end of ctx
	}
}

// turn looks once and acts, and tells how long to wait.
func (b *balance) turn(ctx context.Context) (wait time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, b.every)
	defer cancel()
	seen, err := b.look(limited)
	switch {
	case ctx.Err() != nil:
		return 0, nil
	case fatal(err) || pg.ClassOf(err) == pg.Unprepared:
		return 0, pg.Explain(err)
	case err != nil:
		b.bus.calm.Warn("edda: partitions were not looked at", "endpoint", b.name, "error", err)
		return run.Jitter(b.every), nil
	}
	return b.act(ctx, seen), nil
}

// view is what the leases of the endpoint say.
type view struct {
	servers, rank int
	taken         []bool
	expires       time.Duration // until the first term of another is over, unless it is renewed
}

// look renews the seat, or takes one, and reads how all leases stand.
func (b *balance) look(ctx context.Context) (view, error) {
	if b.seat.Name != "" {
		answer, err := b.bus.leases.Renew(ctx, b.line, b.seat, b.options.Lease)
		if err != nil {
			return view{}, err
		}
		if answer == lease.Lost {
			b.seat = lease.Term{}
		}
	}
	all, err := b.bus.leases.Under(ctx, b.line, b.leaseName(""))
	if err != nil {
		return view{}, err
	}
	if b.seat.Name == "" {
		if err := b.takeSeat(ctx, all); err != nil {
			return view{}, err
		}
	}
	return b.read(all), nil
}

const seatPrefix = "server/"

// takeSeat bids for the lowest seat that is free. Who loses the bid looks again soon.
func (b *balance) takeSeat(ctx context.Context, all []lease.Standing) error {
	held := map[string]bool{}
	for _, l := range all {
		held[l.Name] = l.Held()
	}
	n := 0
	for held[b.leaseName(seatPrefix+strconv.Itoa(n))] {
		n++
	}
	name := b.leaseName(seatPrefix + strconv.Itoa(n))
	t, ok, err := b.bus.leases.Acquire(ctx, b.line, lease.Bid{Name: name, Holder: b.holder, Lease: b.options.Lease})
	if err != nil || !ok {
		return err
	}
	b.seat = t
	if b.bus.wakeup == Notify { // others have to give up something
		b.bus.notifier.Send(ctx, lease.WakePrefix+name)
	}
	return nil
}

func (b *balance) read(all []lease.Standing) view {
	v := view{taken: make([]bool, len(b.posts)), expires: b.every}
	place := map[string]int{}
	for n, s := range b.posts {
		place[b.leaseName(s.endpoint.name)] = n
	}
	own := b.seatNumber(b.seat.Name)
	for _, l := range all {
		if !l.Held() {
			continue
		}
		if n, ok := place[l.Name]; ok {
			v.taken[n] = true
		}
		if number := b.seatNumber(l.Name); number >= 0 && l.Name != b.seat.Name {
			v.servers++
			if number < own {
				v.rank++
			}
		}
		v.expires = min(v.expires, l.Left+together)
	}
	if b.seat.Name != "" {
		v.servers++
	}
	return v
}

// seatNumber is that of the lease, -1 when it is none of a seat.
func (b *balance) seatNumber(name string) int {
	text, ok := strings.CutPrefix(name, b.leaseName(seatPrefix))
	number, err := strconv.Atoi(text)
	if !ok || err != nil {
		return -1
	}
	return number
}

// act starts and ends keepers. It tells when to look again: soon while this process has not its share. Without a seat
// nothing changes: that is a server that looked a moment too late.
func (b *balance) act(ctx context.Context, v view) time.Duration {
	mine := b.roles()
	if b.seat.Name == "" {
		return run.Jitter(unsettled)
	}
	want := share(len(b.posts), v.servers, v.rank)
	d := decide(want, v.rank*len(b.posts)/v.servers, mine, v.taken)
	for _, n := range d.stop {
		b.kept[n].leaving = true
		b.kept[n].end()
	}
	for _, n := range d.start {
		b.start(ctx, n)
	}
	wait := b.every
	if len(d.start)+len(d.stop) > 0 || countOf(mine, working) != want {
		wait = unsettled
	}
	return min(run.Jitter(wait), v.expires)
}

// roles are what this process plays now.
func (b *balance) roles() []role {
	mine := make([]role, len(b.posts))
	for n := range mine {
		k := &b.kept[n]
		if k.end != nil && k.gone() {
			k.end()
			*k = kept{}
		}
		_, holds := b.posts[n].keeper.Holding()
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
		if err := b.posts[n].keeper.Run(ctx); err != nil {
			b.giveUp(err)
		}
		return nil
	})
}

// leave gives the seat back.
func (b *balance) leave(ctx context.Context) {
	if b.seat.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := b.bus.leases.Release(ctx, b.line, b.seat); err != nil {
		b.bus.log.Debug("edda: a seat was not given back", "endpoint", b.name, "error", err) // it expires
	}
	b.seat = lease.Term{}
}
