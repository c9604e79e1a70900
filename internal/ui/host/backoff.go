package uihost

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// backOff slows down those who guess passwords. After some wrong ones, all that come from the same address for the same
// name are refused for a while, right ones too, and for twice as long after each that is wrong again. It is safe for
// concurrent use.
type backOff struct {
	now func() time.Time

	mu    sync.Mutex
	wrong map[guesser]guesses
}

// guesser is where passwords for a name come from. A name that nobody has counts like any other: how often a guess is
// answered must not say which names there are.
type guesser struct {
	name [sha256.Size]byte // its sum: a name may be long
	from netip.Prefix      // a site has 2^64 addresses of IPv6, which are one here
}

func guesserOf(name, remote string) guesser {
	at, _ := netip.ParseAddrPort(remote)
	address, bits := at.Addr().Unmap(), 64
	if address.Is4() {
		bits = 32
	}
	from, _ := address.Prefix(bits) // the zero one for what is no address
	return guesser{sha256.Sum256([]byte(name)), from}
}

type guesses struct {
	n     int       // wrong ones
	last  time.Time // the last of them
	until time.Time // before that nothing is looked at
}

const (
	freeGuesses = 5 // wrong ones, before anything is refused
	firstPause  = time.Second
	mostPause   = time.Minute
	forgotten   = 15 * time.Minute // after the last wrong one
	mostGuesser = 10_000           // are remembered
)

func newBackOff() *backOff { return &backOff{now: time.Now, wrong: map[guesser]guesses{}} }

// wait returns for how long nothing of a guesser is looked at, 0 if it may go on.
func (b *backOff) wait(g guesser) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.wrong[g].until.Sub(b.now()), 0)
}

// failed counts a wrong password.
func (b *backOff) failed(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if _, known := b.wrong[g]; !known && len(b.wrong) >= mostGuesser {
		b.forget(now)
	}
	is := b.wrong[g]
	if now.Sub(is.last) > forgotten {
		is = guesses{}
	}
	is.n, is.last = is.n+1, now
	if over := is.n - freeGuesses; over >= 0 {
		is.until = now.Add(min(firstPause<<min(over, 10), mostPause))
	}
	b.wrong[g] = is
}

// forget drops those who have not guessed for long. If that is nobody it drops the half with the fewest wrong ones:
// memory is bounded, and a crowd of new names takes nobody's pause away.
func (b *backOff) forget(now time.Time) {
	for g, is := range b.wrong {
		if now.Sub(is.last) > forgotten {
			delete(b.wrong, g)
		}
	}
	if len(b.wrong) >= mostGuesser {
		all := slices.SortedFunc(maps.Keys(b.wrong), func(g, h guesser) int {
			return cmp.Or(cmp.Compare(b.wrong[g].n, b.wrong[h].n), b.wrong[g].last.Compare(b.wrong[h].last))
		})
		for _, g := range all[:len(all)/2] {
			delete(b.wrong, g)
		}
	}
}

// passed forgets the wrong ones of somebody who has given the right password.
func (b *backOff) passed(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wrong, g)
}
