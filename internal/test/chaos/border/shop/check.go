package shop

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/operate"
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
	return pg.Load(checkSQL, schema), nil
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

// Fault is one thing that is not as it should be: lost, double or wrong.
type Fault struct{ Rule, What string }

// Verdict is what came of all orders.
type Verdict struct {
	Orders, Paid, Declined int
	Faults                 []Fault
}

func (v Verdict) String() string {
	count := map[string]int{}
	for _, f := range v.Faults {
		count[f.Rule]++
	}
	return fmt.Sprintf("orders=%d paid=%d declined=%d lost=%d double=%d wrong=%d",
		v.Orders, v.Paid, v.Declined, count["lost"], count["double"], count["wrong"])
}

// Fine reports whether orders were placed, and all went their way.
func (v Verdict) Fine() bool { return v.Orders > 0 && len(v.Faults) == 0 }

// add judges one order: placed, paid or declined once and with the right sum, told to the buyer once, and shipped once
// if paid.
func (v *Verdict) add(id string, s story) {
	fault := func(rule, what string) {
		v.Faults = append(v.Faults, Fault{rule, fmt.Sprintf("%s %s: %+v", id, what, s)})
	}
	declined := payments.Refuses(s.card)
	switch {
	case !s.placed:
		fault("wrong", "was never placed")
		return
	case len(s.payments) == 0:
		fault("lost", "was neither paid nor declined")
	case len(s.ends) == 0:
		fault("lost", "has not ended")
	case !declined && s.shipments == 0:
		fault("lost", "is not shipped")
	case len(s.payments) > 1 || len(s.ends) > 1 || s.shipments > 1:
		fault("double", "has an effect twice")
	case s.payments[0] != payment{s.cents, declined}:
		fault("wrong", "has another payment than it should")
	case s.ends[0] != map[bool]string{true: "declined", false: "paid"}[declined]:
		fault("wrong", "ended otherwise than its payment")
	case declined && s.shipments > 0:
		fault("wrong", "is not paid and was shipped")
	}
	v.Orders++
	for _, p := range s.payments[:min(1, len(s.payments))] {
		if p.declined {
			v.Declined++
		} else {
			v.Paid++
		}
	}
}

// Judge compares the two databases, order by order, and sees that nothing is left over.
func (l *Shop) Judge(ctx context.Context) (v Verdict, err error) {
	stories, err := l.stories(ctx)
	if err != nil {
		return v, err
	}
	for _, id := range slices.Sorted(maps.Keys(stories)) {
		v.add(id, *stories[id])
	}
	for _, s := range []*Site{l.Orders, l.Payments} {
		left, err := s.leftOver(ctx)
		if err != nil {
			return v, err
		}
		for _, what := range left {
			v.Faults = append(v.Faults, Fault{"wrong", what})
		}
	}
	n, err := held(ctx, l.Broker)
	if err == nil && n > 0 {
		v.Faults = append(v.Faults, Fault{"wrong", fmt.Sprintf("the broker has %d messages", n)})
	}
	return v, err
}

func (l *Shop) stories(ctx context.Context) (map[string]*story, error) {
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
		at   *Site
		name string
		into []any
		then func()
	}{
		{l.Orders, "placed", []any{&id, &card, &cents},
			func() { s := of(id); s.placed, s.card, s.cents = true, card, cents }},
		{l.Orders, "ends", []any{&id, &news}, func() { s := of(id); s.ends = append(s.ends, news) }},
		{l.Payments, "payments", []any{&id, &cents, &declined},
			func() { s := of(id); s.payments = append(s.payments, payment{cents, declined}) }},
		{l.Payments, "shipments", []any{&id}, func() { of(id).shipments++ }},
	} {
		if err := q.at.each(ctx, q.name, q.into, q.then); err != nil {
			return nil, err
		}
	}
	return stories, nil
}

// leftOver lists the sagas, dead letters, discarded messages and messages in queues that should not be there.
func (s *Site) leftOver(ctx context.Context) ([]string, error) {
	left, err := s.queued(ctx)
	if err != nil {
		return nil, err
	}
	var what string
	err = s.each(ctx, "left_over", []any{&what}, func() { left = append(left, s.Process.Service+": "+what) })
	return left, err
}

// queued lists the queues that are not empty.
func (s *Site) queued(ctx context.Context) (left []string, err error) {
	operator, err := operate.New(s.pool, operate.Options{})
	if err != nil {
		return nil, err
	}
	queues, err := operator.Queues().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if n := q.Ready + q.Delayed + q.Claimed + q.Parked; n > 0 {
			left = append(left, fmt.Sprintf("%s: queue %s has %d messages", s.Process.Service, q.Endpoint, n))
		}
	}
	return left, nil
}

// each calls then for every row of a statement.
func (s *Site) each(ctx context.Context, name string, into []any, then func()) error {
	all, err := statements()
	if err != nil {
		return err
	}
	rows, err := s.pool.Query(ctx, all.Get(name))
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, func() error { then(); return nil })
	}
	if err != nil {
		return fmt.Errorf("ask %s for %s: %w", s.Process.Service, name, err)
	}
	return nil
}

const listed = 10 // faults that are printed

// Print writes the first faults.
func (v Verdict) Print(out io.Writer) {
	for n, f := range v.Faults {
		if n == listed {
			_, _ = fmt.Fprintf(out, "  … and %d more\n", len(v.Faults)-listed)
			break
		}
		_, _ = fmt.Fprintf(out, "  %s: %s\n", f.Rule, f.What)
	}
}
