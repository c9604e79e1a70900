package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Settle starts the settlement of a day.
type Settle struct{ Day string }

// AddUp asks for the day's sum. The answer is Sum.
type AddUp struct{ Day string }

// Sum answers AddUp.
type Sum struct{ Cents int64 }

// PayOut sends the money.
type PayOut struct {
	Day   string
	Cents int64
}

// Kind names the message.
func (Settle) Kind() string { return "settlement.start" }

// Kind names the message.
func (AddUp) Kind() string { return "settlement.add-up" }

// Kind names the message.
func (Sum) Kind() string { return "settlement.sum" }

// Kind names the message.
func (PayOut) Kind() string { return "settlement.pay-out" }

// Settlement is the state of one day.
type Settlement struct{ Asked bool }

func (s *Settlement) start(ctx *saga.Context, _ Settle) error {
	if s.Asked {
		return saga.Discard("this day is being settled already")
	}
	s.Asked = true
	ctx.Send(AddUp{Day: ctx.Key()})
	return nil
}

func (s *Settlement) sum(ctx *saga.Context, m Sum) error {
	if m.Cents > 0 {
		ctx.Send(PayOut{Day: ctx.Key(), Cents: m.Cents})
	}
	ctx.Complete()
	return nil
}

// day is the day of the manifest's firing, or else the one in the message. (Later: a scheduler fills in Fire.)
func day(m Settle, in saga.Info) string {
	if in.Fire != nil {
		return in.Fire.Due.Format(time.DateOnly)
	}
	return m.Day
}

var settlements = saga.Define("settlement", saga.Options{},
	saga.StartedBy(day, (*Settlement).start),
	saga.OnReply((*Settlement).sum))

func addUp(ctx *bus.Context, tx pgx.Tx, m AddUp) error {
	var cents int64
	err := tx.QueryRow(ctx, `SELECT coalesce(sum(cents), 0) FROM payment WHERE day = $1::date`, m.Day).Scan(&cents)
	if err != nil {
		return err
	}
	ctx.Reply(Sum{Cents: cents})
	return nil
}

func payOut(ctx *bus.Context, tx pgx.Tx, m PayOut) error {
	_, err := tx.Exec(ctx, `INSERT INTO payout (day, cents) VALUES ($1::date, $2)`, m.Day, m.Cents)
	return err
}

func main() {
	start := flag.String("day", "", "settle this `day`, such as 2026-11-20; without it only work on what was started")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := settle(ctx, *start); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

func settle(ctx context.Context, start string) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	// A saga has no transaction: what writes to other tables is a handler, here in an endpoint of its own.
	days, err := bus.NewEndpoint(b, "settlement", bus.EndpointOptions{}, bus.Saga(settlements))
	if err != nil {
		return err
	}
	books, err := bus.NewEndpoint(b, "books", bus.EndpointOptions{}, bus.HandleTx(addUp), bus.HandleTx(payOut))
	if err != nil {
		return err
	}
	host, err := edda.NewHost(pool, days, books)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	if start != "" {
		if _, err := b.Send(ctx, Settle{Day: start}); err != nil {
			return err
		}
	}
	return host.Run(ctx)
}
