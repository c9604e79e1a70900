package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// view is an order as a page shows it.
type view struct {
	ID, Item, Note string
	Quantity       int
	cents          int64
	Placed         time.Time
	news
}

// news is the changing part of an open page, and the data of an event.
type news struct {
	Headline string `json:"headline"`
	Done     int    `json:"done"` // steps that lie behind
	Refused  bool   `json:"refused"`
	Over     bool   `json:"over"`
}

// steps are the steps of an order.
var steps = []string{"Placed", "Paid", "Packed", "Shipped"}

// step is a step on a page.
type step struct{ Name, State, Mark string }

// Steps of the order, as far as it has come.
func (n news) Steps() []step {
	all := make([]step, len(steps))
	for i, name := range steps {
		all[i] = step{Name: name, State: "later"}
		switch {
		case i < n.Done:
			all[i].State, all[i].Mark = "done", "done"
		case n.Refused:
			all[i].State, all[i].Mark = "off", "cancelled"
		case i == n.Done:
			all[i].State, all[i].Mark = "now", "under way"
		}
	}
	return all
}

// Arrived reports whether no step is left.
func (n news) Arrived() bool { return n.Done == len(steps) }

// newsAt returns the news for a state or an outcome. "" is an order whose saga has not begun.
func newsAt(at string) news {
	switch at {
	case paying:
		return news{Headline: "Waiting for the bank", Done: 1}
	case packing:
		return news{Headline: "Paid, and being packed", Done: 2}
	case shipped:
		return news{Headline: "Shipped", Done: 4}
	case refused:
		return news{Headline: "Cancelled: the bank refused the payment", Done: 1, Refused: true}
	}
	return news{Headline: "Placed", Done: 1}
}

// Total is the price.
func (v view) Total() string { return euros(v.cents) }

func euros(cents int64) string { return fmt.Sprintf("€ %d.%02d", cents/100, cents%100) }

// look reads an order and its state; ok is false if it does not exist. The saga is read first: once it is gone, its
// outcome is booked, and the row, which is read later, has it.
func (s *site) look(ctx context.Context, id string) (v view, ok bool, err error) {
	var state Order
	if _, _, err := s.bus.Instance(ctx, orders, id, &state); err != nil {
		return v, false, err
	}
	var outcome *string
	err = s.pool.QueryRow(ctx, `SELECT id::text, item, note, quantity, cents, placed, outcome FROM shop_order
		WHERE id = $1`, id).
		Scan(&v.ID, &v.Item, &v.Note, &v.Quantity, &v.cents, &v.Placed, &outcome)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, false, nil
	}
	if err != nil {
		return v, false, fmt.Errorf("read order %s: %w", id, err)
	}
	v.news = newsAt(state.At)
	if outcome != nil {
		v.news = newsAt(*outcome)
		v.Over = true
	}
	return v, true, nil
}
