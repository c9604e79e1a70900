package trade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/order/shop"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/demo"
	"github.com/edda-go/edda/internal/test/demo/pages"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Run opens the shop on a database of its own, places the orders, and checks their effects.
func Run(ctx context.Context, s Settings, out io.Writer) error {
	return demo.OnDatabase(ctx, s.Database, "shop", shop.Tables, func(d *demo.Database) error {
		site, err := pages.Open(ctx, s.Pages, d.Pool, d.Edda, shop.Orders(s.PayWithin))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out,
			"%d orders, %d a second; an order waits %v for its money. It takes about half a minute at the defaults.\n"+
				"Look at it in a browser: %s\n", s.Orders, s.Rate, s.PayWithin, site.URL())
		if err := trade(ctx, s, d.Pool, d.Edda, out); err != nil || !s.Stay {
			return errors.Join(err, site.Close())
		}
		_, _ = fmt.Fprintf(out, "\nThe pages stay until Ctrl-C. Order %s: %ssagas/order/%[1]s\n", toldOrder,
			site.URL())
		return site.Wait()
	})
}

// trade runs the shop while orders are placed, until the last one has ended.
func trade(ctx context.Context, s Settings, pool *pgxpool.Pool, schema string, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Within,
		fmt.Errorf("the orders did not end within %v (--within)", s.Within))
	defer cancel()
	counts := newTally()
	o, err := operate.New(pool, operate.Options{Schema: schema})
	if err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{Schema: schema, Events: counts.observe,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	runners, err := shop.Endpoints(b, s.PayWithin)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	err = open(ctx, host,
		func(ctx context.Context) error { return place(ctx, b, s.Orders, s.Rate) },
		func(ctx context.Context, placed <-chan struct{}) error { return watch(ctx, o, counts, placed, out) })
	if err != nil {
		return err
	}
	if err := counts.print(out); err != nil {
		return err
	}
	if err := showDead(ctx, o, out); err != nil {
		return err
	}
	if err := check(ctx, pool, s.Orders, out); err != nil || s.Orders < 7 {
		return err
	}
	return tell(ctx, o, out)
}

// open runs the shop while orders are placed, until watch returns.
func open(
	ctx context.Context, host *edda.Host, place func(ctx context.Context) error,
	watch func(ctx context.Context, placed <-chan struct{}) error,
) error {
	group, placed := run.NewGroup(ctx), make(chan struct{})
	group.Go(host.Run)
	group.Go(func(ctx context.Context) error {
		defer close(placed)
		return place(ctx)
	})
	group.Go(func(ctx context.Context) error {
		defer group.Stop()
		return watch(ctx, placed)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// watch prints once a second how the orders are doing, until all are placed and every queue is empty.
func watch(
	ctx context.Context, o *operate.Operator, counts *tally, placed <-chan struct{}, out io.Writer,
) error {
	begun := time.Now()
	for {
		all := isClosed(placed) // read before the queues: the next pass counts orders that are placed in between
		waiting, err := depth(ctx, o)
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
func showDead(ctx context.Context, o *operate.Operator, out io.Writer) error {
	letters, err := o.DeadLetters().List(ctx, recoverability.LetterFilter{Limit: 1})
	if err != nil {
		return err
	}
	for _, l := range letters {
		_, _ = fmt.Fprintf(out, "the first dead letter: %s in %s after %d attempt(s): %s\n", l.Kind, l.Endpoint,
			l.Attempts, l.Error)
	}
	return nil
}
