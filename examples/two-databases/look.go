package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/edda-go/edda/internal/run"
)

// look runs both services in this process, over a broker of one node, and tells the way of the first orders.
func look(ctx context.Context, s settings, out io.Writer) (err error) {
	_, _ = fmt.Fprintln(out, "Two Postgres servers and a broker are started; that takes a few seconds.")
	n := newNarrator(out, told)
	l, err := openLab(ctx, labOptions{nodes: 1, observer: n})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	_, _ = fmt.Fprintf(out, "Now %d orders are placed a second, for %v. You see the way of %d, each line with the "+
		"database where it happens:\n\n",
		s.rate, s.lasting(), told)
	all := run.NewGroup(ctx)
	all.Go(l.orders.Run)
	all.Go(l.payments.Run)
	all.Go(func(ctx context.Context) error {
		defer all.Stop()
		if err := l.sell(ctx, s, n); err != nil {
			return err
		}
		l.drain(ctx, patience)
		return nil
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was checked")
	}
	v, err := l.judge(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "\nThe shop is closed. Every order, checked in both databases (the README says what "+
		"each word counts):")
	v.tell(out)
	_, _ = fmt.Fprintln(out, v)
	if !v.fine() {
		return errWrong
	}
	return nil
}

// told is how many orders are told of.
const told = 3

// sell lets buyers place orders for as long as the flags say.
func (l *lab) sell(ctx context.Context, s settings, n *narrator) error {
	ctx, stop := context.WithTimeout(ctx, s.lasting())
	defer stop()
	b := &buyers{shop: l.shop, random: rand.New(rand.NewPCG(s.seed, 1)), rate: s.rate, placed: n.placed}
	return b.run(ctx)
}
