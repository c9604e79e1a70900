package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ledger counts the effects of orders without a database. Safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	orders map[int]*effects // guarded by mu
}

// effects are those of one order, as check.sql counts them.
type effects struct {
	placed, charges, refunds, reservations, releases, shipments, outcomes int

	outcome string // the first by name
}

// pages are what one handler has written.
type pages []func(of func(order int) *effects)

// onPostgres keeps the books in tables.
type onPostgres struct{}

func (onPostgres) inMemory() *ledger { return nil }

func (l *ledger) inMemory() *ledger { return l }

// add makes what a handler has written count.
func (l *ledger) add(written pages) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, write := range written {
		write(func(order int) *effects {
			e := l.orders[order]
			if e == nil {
				e = &effects{}
				l.orders[order] = e
			}
			return e
		})
	}
}

func (p *pages) count(order int, field func(*effects) *int) error {
	*p = append(*p, func(of func(int) *effects) { *field(of(order))++ })
	return nil
}

func (p *pages) place(order int) error {
	return p.count(order, func(e *effects) *int { return &e.placed })
}

func (p *pages) charge(_ context.Context, order, _ int) error {
	return p.count(order, func(e *effects) *int { return &e.charges })
}

func (p *pages) refund(_ context.Context, order int) error {
	return p.count(order, func(e *effects) *int { return &e.refunds })
}

func (p *pages) reserve(_ context.Context, order int, _ string) error {
	return p.count(order, func(e *effects) *int { return &e.reservations })
}

func (p *pages) release(_ context.Context, order int) error {
	return p.count(order, func(e *effects) *int { return &e.releases })
}

func (p *pages) ship(_ context.Context, order int) error {
	return p.count(order, func(e *effects) *int { return &e.shipments })
}

func (p *pages) close(_ context.Context, order int, outcome string) error {
	*p = append(*p, func(of func(int) *effects) {
		if e := of(order); e.outcome == "" || outcome < e.outcome {
			e.outcome = outcome
		}
	})
	return p.count(order, func(e *effects) *int { return &e.outcomes })
}

// verdicts are what check.sql returns.
func (l *ledger) verdicts() (all []verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, order := range slices.Sorted(maps.Keys(l.orders)) {
		e := *l.orders[order]
		v := verdict{Order: order, Outcome: e.outcome}
		v.Effects = fmt.Sprintf("(%d,%d,%d,%d,%d,%d,%d)", e.placed, e.charges, e.refunds, e.reservations, e.releases,
			e.shipments, e.outcomes)
		switch e.outcome {
		case "":
			v.Outcome = "open"
		case shipped:
			v.Fine = e == effects{1, 1, 0, 1, 0, 1, 1, shipped}
		default:
			v.Fine = e.placed == 1 && e.outcomes == 1 && e.shipments == 0 && e.charges == e.refunds && e.charges <= 1 &&
				e.reservations == 1 && e.releases == 1
		}
		all = append(all, v)
	}
	return all
}
