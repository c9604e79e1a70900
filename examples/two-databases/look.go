package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/edda-go/edda/examples/two-databases/shop"
	"github.com/edda-go/edda/internal/run"
)

// look runs both services in this process, over a broker of one node, and tells the way of the first orders.
func look(ctx context.Context, s settings, out io.Writer) (err error) {
	_, _ = fmt.Fprintln(out, "Two Postgres servers and a broker are started; that takes a few seconds.")
	n := newNarrator(out, told)
	l, err := shop.Open(ctx, shop.Options{Nodes: 1, Observer: n})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	_, _ = fmt.Fprintf(out, "Now %d orders are placed a second, for %v. You see the way of %d, each line with the "+
		"database where it happens:\n\n",
		s.rate, s.lasting(), told)
	all := run.NewGroup(ctx)
	all.Go(l.Orders.Run)
	all.Go(l.Payments.Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := sell(ctx, l, s, n); err != nil {
			return err
		}
		l.Drain(ctx, patience)
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was checked")
	}
	v, err := l.Judge(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "\nThe shop is closed. Every order, checked in both databases (the README says what "+
		"each word counts):")
	v.Print(out)
	_, _ = fmt.Fprintln(out, v)
	if !v.Fine() {
		return errWrong
	}
	return nil
}

// patience is how long everything may take to come to rest.
const patience = 2 * time.Minute

// told is how many orders are told of.
const told = 3

// sell lets buyers place orders for as long as the flags say.
func sell(ctx context.Context, l *shop.Shop, s settings, n *narrator) error {
	ctx, stop := context.WithTimeout(ctx, s.lasting())
	defer stop()
	b := &shop.Buyers{Counter: l.Counter, Random: rand.New(rand.NewPCG(s.seed, 1)), Rate: s.rate, Placed: n.placed}
	return b.Run(ctx)
}
