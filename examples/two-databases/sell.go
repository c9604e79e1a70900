package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/examples/two-databases/orders"
)

const restWithin = time.Minute // how long the orders may take after the last was placed

// errWrong is the answer of the check.
var errWrong = errors.New("not every order is as it should be")

// sell places count orders, waits until each has ended, and prints how they ended.
func (s *shop) sell(ctx context.Context, count int, out io.Writer) error {
	run := time.Now().Format("0102-150405.000") // prefix of their ids: the tables also hold the orders of earlier runs
	for n := range count {
		o := orders.PlaceOrder{OrderID: fmt.Sprintf("%s-%d", run, n+1), Cents: 100 + rand.Int64N(10_000),
			Card: fmt.Sprintf("%015d%d", rand.Int64N(1e15), (n+5)%10)} // each tenth ends in 7
		sent, err := s.orders.Place(ctx, o)
		if err != nil {
			return err
		}
		s.narrator.placed(o, sent)
	}
	resting, cancel := context.WithTimeout(ctx, restWithin)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		c, err := s.count(ctx, run)
		if err != nil {
			return err
		}
		if c.resting(count) || resting.Err() != nil {
			_, _ = fmt.Fprintf(out, "\norders=%d %v\n", count, c)
			if !c.fine(count) {
				return errWrong
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("interrupted: nothing was checked")
		}
	}
}

// counts holds the counts of a run's orders in both databases. No table has a constraint: a duplicate counts twice.
type counts struct {
	toldPaid, toldDeclined     int // in the database of the orders
	charged, declined, shipped int // in that of the payments
}

func (c counts) String() string {
	return fmt.Sprintf("paid=%d declined=%d shipped=%d", c.charged, c.declined, c.shipped)
}

func (c counts) resting(orders int) bool {
	return c.toldPaid+c.toldDeclined >= orders && c.shipped >= c.toldPaid
}

func (c counts) fine(orders int) bool {
	return c.toldPaid+c.toldDeclined == orders && c.charged == c.toldPaid && c.declined == c.toldDeclined &&
		c.shipped == c.charged
}

func (s *shop) count(ctx context.Context, run string) (c counts, err error) {
	err1 := s.here.QueryRow(ctx, `SELECT count(*) FILTER (WHERE news = 'paid'),
		count(*) FILTER (WHERE news = 'declined') FROM page WHERE order_id LIKE $1 || '-%'`, run).
		Scan(&c.toldPaid, &c.toldDeclined)
	err2 := s.there.QueryRow(ctx, `SELECT count(*) FILTER (WHERE NOT declined), count(*) FILTER (WHERE declined)
		FROM payment WHERE order_id LIKE $1 || '-%'`, run).Scan(&c.charged, &c.declined)
	err3 := s.there.QueryRow(ctx, `SELECT count(*) FROM shipment WHERE order_id LIKE $1 || '-%'`, run).Scan(&c.shipped)
	return c, errors.Join(err1, err2, err3)
}
