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

// backOff slows down attempts to guess passwords. After some wrong passwords it refuses all attempts from the same
// address for the same name for a while, even with the right password, and twice as long after each further wrong
// one. Safe for concurrent use.
type backOff struct {
	now func() time.Time

	mu    sync.Mutex
	wrong map[guesser]guesses
}

// guesser is a name and the network that passwords for it come from. An unknown name counts like any other: the pace
// of the answers must not reveal which names exist.
type guesser struct {
	name [sha256.Size]byte // hash of the name, which may be long
	from netip.Prefix      // a site has 2^64 addresses of IPv6, which count as one here
}

func guesserOf(name, remote string) guesser {
	at, _ := netip.ParseAddrPort(remote)
	address, bits := at.Addr().Unmap(), 64
	if address.Is4() {
		bits = 32
	}
	from, _ := address.Prefix(bits) // the zero prefix if it is no address
	return guesser{sha256.Sum256([]byte(name)), from}
}

type guesses struct {
	n     int       // number of wrong passwords
	last  time.Time // the last wrong password
	until time.Time // until then all attempts are refused
}

const (
	freeGuesses = 5 // wrong passwords before attempts are refused
	firstPause  = time.Second
	mostPause   = time.Minute
	forgotten   = 15 * time.Minute // after the last wrong one
	mostGuesser = 10_000           // guessers that are remembered
)

func newBackOff() *backOff { return &backOff{now: time.Now, wrong: map[guesser]guesses{}} }

// wait returns how long attempts of a guesser are still refused, or 0.
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

// forget drops guessers without a recent guess. If there is no such guesser it drops the half with the fewest wrong
// passwords: memory is bounded, and many new names do not shorten the pause of a persistent guesser.
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

// passed removes the record of a guesser that gave the right password.
func (b *backOff) passed(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wrong, g)
}
