package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddafx"
	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/demo/pages"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability/deadletter"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"
)

//go:embed tables.sql
var tablesSQL string

// open runs the shop, in memory or on a database of its own.
func open(ctx context.Context, s settings, out io.Writer) error {
	begin := func() {
		_, _ = fmt.Fprintf(out,
			"%d orders, %d a second; an order waits %v for its money. It takes about half a minute at the defaults.\n",
			s.orders, s.rate, s.payWithin)
	}
	if s.memory {
		begin()
		return tradeInMemory(ctx, s, out)
	}
	return demo.WithDatabase(ctx, "shop", tablesSQL, func(d *demo.Database) error {
		site, err := pages.Open(ctx, s.pages, d.Pool, d.Edda, orders(rules{payWithin: s.payWithin}))
		if err != nil {
			return err
		}
		begin()
		_, _ = fmt.Fprintf(out, "Look at it in a browser: %s\n", site.URL())
		if err := trade(ctx, s, d.Pool, d.Edda, out); err != nil || !s.stay {
			return errors.Join(err, site.Close())
		}
		_, _ = fmt.Fprintf(out, "\nThe pages stay until Ctrl-C. Order %s: %ssagas/order/%[1]s\n", toldOrder,
			site.URL())
		return site.Wait()
	})
}

// deadline bounds a run of the program.
func (s settings) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.within, fmt.Errorf("the orders did not end within %v (-within)", s.within))
}

// trade runs the app while orders are placed, until the last one has ended.
func trade(ctx context.Context, s settings, pool *pgxpool.Pool, schema string, out io.Writer) error {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	counts := newTally()
	o, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		return err
	}
	var b *bus.Bus
	app := wire(s, pool, bus.Options{Schema: schema, AutoInstall: true, Events: counts.observe,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}, fx.Populate(&b))
	if err := app.Start(ctx); err != nil {
		return err
	}
	err = placeAndWatch(ctx, s,
		func(ctx context.Context, first, last int) error { return placeSome(ctx, b, first, last) },
		func(ctx context.Context, placed <-chan struct{}) error {
			return watch(ctx, func(ctx context.Context) (int64, error) { return depth(ctx, o) }, counts, placed, out)
		})
	stopping, end := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer end()
	if err = errors.Join(err, app.Stop(stopping)); err != nil {
		return err
	}
	if err := counts.print(out); err != nil {
		return err
	}
	if err := showDead(ctx, pool, o, out); err != nil {
		return err
	}
	if err := check(ctx, pool, s.orders, out); err != nil || s.orders < 7 {
		return err
	}
	return tell(ctx, o, out)
}

// wire is the whole program, as a user of fx writes it.
func wire(s settings, pool *pgxpool.Pool, o bus.Options, more ...fx.Option) *fx.App {
	for _, spec := range cast(s, onPostgres{}) {
		more = append(more, eddafx.Endpoint(spec.Name, spec.Options, spec.Parts...))
	}
	return fx.New(append(more,
		fx.NopLogger,
		fx.Supply(pool),
		fx.Provide(func() *bank { return &bank{payWithin: s.payWithin} }),
		eddafx.Module(o),
		eddafx.EndpointFrom(func(b *bank) eddafx.Spec { return b.endpoint(onPostgres{}) }),
	)...)
}

// cast are the endpoints that need nothing but the books.
func cast(s settings, k keeper) []eddafx.Spec {
	return []eddafx.Spec{
		{Name: "orders", Parts: []bus.Part{bus.Saga(orders(rules{payWithin: s.payWithin}))}},
		{Name: "shipping", Parts: []bus.Part{handle(k, reserve), handle(k, release), handle(k, ship)}},
		{Name: "accounts", Options: bus.EndpointOptions{Concurrency: 1}, Parts: []bus.Part{handle(k, book)}},
	}
}

// placeAndWatch places the orders while watch runs, and waits for both.
func placeAndWatch(
	ctx context.Context, s settings, some func(ctx context.Context, first, last int) error,
	watch func(ctx context.Context, placed <-chan struct{}) error,
) error {
	group := run.NewGroup(ctx)
	placed := make(chan struct{})
	group.Go(func(ctx context.Context) error {
		defer close(placed)
		return place(ctx, some, s.orders, s.rate)
	})
	group.Go(func(ctx context.Context) error { return watch(ctx, placed) })
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// watch prints once a second how the orders are doing, until all are placed and every queue is empty.
func watch(
	ctx context.Context, depth func(context.Context) (int64, error), counts *tally, placed <-chan struct{},
	out io.Writer,
) error {
	begun := time.Now()
	for {
		all := isClosed(placed) // asked before the queues are read: what is placed in between is seen next time
		waiting, err := depth(ctx)
		if err != nil {
			return err
		}
		sum := counts.sum()
		_, _ = fmt.Fprintf(out, "%4.0f s  handled %6d  waiting %5d  retries %5d  conflicts %3d  dead letters %3d\n",
			time.Since(begun).Seconds(), sum.handled, waiting, sum.retries, sum.conflicts, sum.dead)
		if all && waiting == 0 {
			return nil
		}
		if err := run.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// depth is how many messages wait in all queues, timeouts included.
func depth(ctx context.Context, o *operate.Operator) (waiting int64, err error) {
	queues, err := o.Queues().List(ctx)
	for _, q := range queues {
		waiting += q.Ready + q.Delayed
	}
	return waiting, err
}

// showDead prints the first dead letter, as an operator would look at it.
func showDead(ctx context.Context, pool *pgxpool.Pool, o *operate.Operator, out io.Writer) error {
	letters, err := o.DeadLetters().List(ctx, pool, deadletter.Filter{Limit: 1})
	if err != nil {
		return err
	}
	for _, l := range letters {
		showLetter(l, out)
	}
	return nil
}

func showLetter(l deadletter.Letter, out io.Writer) {
	_, _ = fmt.Fprintf(out, "the first dead letter: %s in %s after %d attempt(s): %s\n", l.Kind, l.Endpoint, l.Attempts,
		l.Error)
}
