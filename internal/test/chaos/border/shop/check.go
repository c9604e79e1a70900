package shop

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"github.com/edda-go/edda/examples/two-databases/payments"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5"
)

//go:embed check.sql
var checkSQL string

var sql = lab.SQL(checkSQL)

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
		fault("wrong", "has the wrong payment")
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
	for _, site := range []*Site{l.Orders, l.Payments} {
		known, err := ask[deed](ctx, site, "known_to_"+site.Process.Service)
		if err != nil {
			return nil, err
		}
		for _, d := range known {
			if stories[d.ID] == nil {
				stories[d.ID] = &story{}
			}
			stories[d.ID].learn(d)
		}
	}
	return stories, nil
}

// deed is a row that tells of an order.
type deed struct {
	ID, What, Text string // with placed the card, with ended how the buyer was told
	Cents          int64
	Declined       bool
}

func (s *story) learn(d deed) {
	switch d.What {
	case "placed":
		s.placed, s.card, s.cents = true, d.Text, d.Cents
	case "ended":
		s.ends = append(s.ends, d.Text)
	case "payment":
		s.payments = append(s.payments, payment{d.Cents, d.Declined})
	case "shipment":
		s.shipments++
	}
}

// leftOver lists the sagas, dead letters, discarded messages and messages in queues that should not be there.
func (s *Site) leftOver(ctx context.Context) ([]string, error) {
	left, err := s.queued(ctx)
	if err != nil {
		return nil, err
	}
	more, err := ask[struct{ What string }](ctx, s, "left_over")
	for _, m := range more {
		left = append(left, s.Process.Service+": "+m.What)
	}
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

// ask returns the rows of a statement.
func ask[T any](ctx context.Context, s *Site, name string) ([]T, error) {
	rows, err := s.pool.Query(ctx, sql.Get(name))
	if err != nil {
		return nil, fmt.Errorf("read from %s: %s: %w", s.Process.Service, name, err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
