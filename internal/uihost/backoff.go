package uihost

import (
	"net/netip"
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

// guesser is who gives a password: a name that is known, "" for all others, and an address without its port.
type guesser struct {
	name string
	from netip.Addr
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
	if len(b.wrong) >= mostGuesser {
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

// forget drops those who have not guessed for long, or all if that is nobody: memory is bounded before patience is.
func (b *backOff) forget(now time.Time) {
	for g, is := range b.wrong {
		if now.Sub(is.last) > forgotten {
			delete(b.wrong, g)
		}
	}
	if len(b.wrong) >= mostGuesser {
		clear(b.wrong)
	}
}

// passed forgets the wrong ones of somebody who has given the right password.
func (b *backOff) passed(g guesser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wrong, g)
}
