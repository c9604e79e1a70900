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

// leaves are what one handler has written.
type leaves []entry

func (p *leaves) write(_ context.Context, e entry) error {
	*p = append(*p, e)
	return nil
}

// onPostgres keeps the books in tables.
type onPostgres struct{}

func (onPostgres) inMemory() *ledger { return nil }

func (l *ledger) inMemory() *ledger { return l }

// add makes what a handler has written count.
func (l *ledger) add(written leaves) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range written {
		of := l.orders[e.order]
		if of == nil {
			of = &effects{}
			l.orders[e.order] = of
		}
		of.count(e)
	}
}

func (e *effects) count(written entry) {
	counts := map[string]*int{
		aPlaced: &e.placed, aCharge: &e.charges, aRefund: &e.refunds, aReservation: &e.reservations,
		aRelease: &e.releases, aShipment: &e.shipments, anOutcome: &e.outcomes,
	}
	*counts[written.what]++
	if outcome, ok := written.detail.(string); ok && written.what == anOutcome {
		if e.outcome == "" || outcome < e.outcome {
			e.outcome = outcome
		}
	}
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
