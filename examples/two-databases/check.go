package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

//go:embed check.sql
var checkSQL string

// statements are those of the check.
func statements() (pg.Statements, error) {
	schema, err := pg.ParseSchema(pg.DefaultSchema)
	if err != nil {
		return nil, err
	}
	return pg.Load(checkSQL, schema)
}

// story is all that both databases know of one order.
type story struct {
	placed    bool
	card      string
	cents     int64
	ends      []string
	payments  []payment
	shipments int
}

type payment struct {
	cents    int64
	declined bool
}

// verdict is what came of all orders.
type verdict struct {
	orders, paid, declined int
	lost, double, wrong    int
	faults                 []string
}

func (v verdict) String() string {
	return fmt.Sprintf("orders=%d paid=%d declined=%d lost=%d double=%d wrong=%d", v.orders, v.paid, v.declined, v.lost,
		v.double, v.wrong)
}

func (v verdict) fine() bool { return v.orders > 0 && v.lost+v.double+v.wrong == 0 }

// add judges one order: placed, paid or declined once and with the right sum, told to the buyer once, and shipped once
// if paid.
func (v *verdict) add(id string, s story) {
	fault := func(count *int, what string) {
		*count++
		v.faults = append(v.faults, fmt.Sprintf("%s %s: %+v", id, what, s))
	}
	declined := payments.Refuses(s.card)
	switch {
	case !s.placed:
		fault(&v.wrong, "was never placed")
		return
	case len(s.payments) == 0:
		fault(&v.lost, "was neither paid nor declined")
	case len(s.ends) == 0:
		fault(&v.lost, "has not ended")
	case !declined && s.shipments == 0:
		fault(&v.lost, "is not shipped")
	case len(s.payments) > 1 || len(s.ends) > 1 || s.shipments > 1:
		fault(&v.double, "has an effect twice")
	case s.payments[0] != payment{s.cents, declined}:
		fault(&v.wrong, "has another payment than it should")
	case s.ends[0] != map[bool]string{true: "declined", false: "paid"}[declined]:
		fault(&v.wrong, "ended otherwise than its payment")
	case declined && s.shipments > 0:
		fault(&v.wrong, "is not paid and was shipped")
	}
	v.orders++
	for _, p := range s.payments[:min(1, len(s.payments))] {
		if p.declined {
			v.declined++
		} else {
			v.paid++
		}
	}
}

// judge compares the two databases, order by order, and sees that nothing is left over.
func (l *lab) judge(ctx context.Context) (v verdict, err error) {
	stories, err := l.stories(ctx)
	if err != nil {
		return v, err
	}
	for _, id := range slices.Sorted(maps.Keys(stories)) {
		v.add(id, *stories[id])
	}
	for _, s := range []*site{l.orders, l.payments} {
		left, err := s.leftOver(ctx)
		if err != nil {
			return v, err
		}
		v.wrong += len(left)
		v.faults = append(v.faults, left...)
	}
	n, err := held(ctx, l.broker)
	if err == nil && n > 0 {
		v.wrong += int(n)
		v.faults = append(v.faults, fmt.Sprintf("the broker has %d messages", n))
	}
	return v, err
}

func (l *lab) stories(ctx context.Context) (map[string]*story, error) {
	stories := map[string]*story{}
	of := func(id string) *story {
		if stories[id] == nil {
			stories[id] = &story{}
		}
		return stories[id]
	}
	var id, card, news string
	var cents int64
	var declined bool
	for _, q := range []struct {
		at   *site
		name string
		into []any
		then func()
	}{
		{l.orders, "placed", []any{&id, &card, &cents},
			func() { s := of(id); s.placed, s.card, s.cents = true, card, cents }},
		{l.orders, "ends", []any{&id, &news}, func() { s := of(id); s.ends = append(s.ends, news) }},
		{l.payments, "payments", []any{&id, &cents, &declined},
			func() { s := of(id); s.payments = append(s.payments, payment{cents, declined}) }},
		{l.payments, "shipments", []any{&id}, func() { of(id).shipments++ }},
	} {
		if err := q.at.each(ctx, q.name, q.into, q.then); err != nil {
			return nil, err
		}
	}
	return stories, nil
}

// leftOver lists the sagas, dead letters, discarded messages and messages in queues that should not be there.
func (s *site) leftOver(ctx context.Context) ([]string, error) {
	left, err := s.queued(ctx)
	if err != nil {
		return nil, err
	}
	var what string
	err = s.each(ctx, "left_over", []any{&what}, func() { left = append(left, s.worker.Service+": "+what) })
	return left, err
}

// queued lists the queues that are not empty.
func (s *site) queued(ctx context.Context) (left []string, err error) {
	queues, err := s.Bus().Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if n := q.Ready + q.Delayed + q.Claimed + q.Parked; n > 0 {
			left = append(left, fmt.Sprintf("%s: queue %s has %d messages", s.worker.Service, q.Endpoint, n))
		}
	}
	return left, nil
}

// each calls then for every row of a statement.
func (s *site) each(ctx context.Context, name string, into []any, then func()) error {
	all, err := statements()
	if err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, all.Get(name))
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, func() error { then(); return nil })
	}
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", s.worker.Service, name, err)
	}
	return nil
}

const listed = 10 // faults that are printed

func (v verdict) tell(out io.Writer) {
	for n, f := range v.faults {
		if n == listed {
			_, _ = fmt.Fprintf(out, "  … and %d more\n", len(v.faults)-listed)
			break
		}
		_, _ = fmt.Fprintln(out, "  wrong:", f)
	}
}
