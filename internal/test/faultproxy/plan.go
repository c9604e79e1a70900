package faultproxy

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// plan counts passings and decides which of them break.
type plan struct {
	seed uint64

	mu     sync.Mutex // guards all fields below
	seen   map[string]int
	faults []Fault
	rate   float64
	random Action
	fired  []string
}

// passing is one execution of a named statement, with its faults.
type passing struct {
	before, after *Fault
}

func (p *plan) set(faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.Clone(faults)
	p.seen = map[string]int{}
	p.rate = 0
	p.fired = nil
}

// pass counts an execution. A statement without a name has no faults.
func (p *plan) pass(statement string) passing {
	if statement == "" {
		return passing{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[statement]++
	n := p.seen[statement]

	var found passing
	for _, f := range p.faults {
		if f.Statement == statement && (f.N == n || f.N == 0) {
			f.N = n
			found.add(f)
		}
	}
	if f, strikes := p.chance(statement, n); strikes {
		found.add(f)
	}
	return found
}

// add keeps the first fault for each moment.
func (p *passing) add(f Fault) {
	switch {
	case f.moment() == Before && p.before == nil:
		p.before = &f
	case f.moment() == After && p.after == nil:
		p.after = &f
	}
}

// chance decides by random numbers about one passing. They are derived from the seed, the name and the count, so the
// order of connections has no influence. The caller holds mu.
func (p *plan) chance(statement string, n int) (Fault, bool) {
	if p.rate <= 0 {
		return Fault{}, false
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", statement, n)
	dice := rand.New(rand.NewPCG(p.seed, h.Sum64()))
	strikes := dice.Float64() < p.rate
	return Fault{Statement: statement, N: n, When: When(dice.IntN(2)), Do: p.random}, strikes
}

func (p *plan) randomly(rate float64, do Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.random = rate, do
}

func (p *plan) noteFired(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fired = append(p.fired, f.String())
}

func (p *plan) seenSoFar() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen)
}

func (p *plan) firedSoFar() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.fired)
}
