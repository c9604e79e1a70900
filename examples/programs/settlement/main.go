package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Settle starts the settlement of the day for which it fires.
type Settle struct{ Currency string }

// SumDay requests the day's sum. The answer is DaySummed.
type SumDay struct{ Day, Currency string }

// DaySummed answers SumDay.
type DaySummed struct{ Cents int64 }

// PayOut sends the money.
type PayOut struct {
	Day   string
	Cents int64
}

// Kind names the message.
func (Settle) Kind() string { return "settlement.start" }

// Kind names the message.
func (SumDay) Kind() string { return "settlement.sum" }

// Kind names the message.
func (DaySummed) Kind() string { return "settlement.summed" }

// Kind names the message.
func (PayOut) Kind() string { return "settlement.pay-out" }

// Settlement is the state of one day.
type Settlement struct {
	Currency string
	Cents    int64
}

func (s *Settlement) start(ctx *saga.Context, m Settle) error {
	s.Currency = m.Currency
	ctx.Send(SumDay{Day: ctx.Key(), Currency: m.Currency})
	return nil
}

// summed is the end of the saga, and with it of the manifest's run.
func (s *Settlement) summed(ctx *saga.Context, m DaySummed) error {
	s.Cents = m.Cents
	ctx.Send(PayOut{Day: ctx.Key(), Cents: m.Cents})
	ctx.Complete()
	return nil
}

// day is that of the firing, in the manifest's zone.
func day(_ Settle, in saga.Info) string { return in.Firing.Due.Format(time.DateOnly) }

var settlements = saga.Define("settlement", saga.Options{},
	saga.StartedBy(day, (*Settlement).start),
	saga.OnReply((*Settlement).summed))

var nightly = scheduler.Manifest{
	Name:    "settlement",
	When:    scheduler.Cron("30 2 * * *", "Europe/Oslo"),
	Message: Settle{Currency: "NOK"},
	Misfire: scheduler.MisfireAll,
}

// A saga has no transaction: only a handler reads and writes other tables.
func sum(ctx *bus.Context, tx pgx.Tx, m SumDay) error {
	var cents int64
	err := tx.QueryRow(ctx, `SELECT coalesce(sum(cents), 0) FROM payment WHERE day = $1::date AND currency = $2`, m.Day,
		m.Currency).Scan(&cents)
	if err != nil {
		return err
	}
	ctx.Reply(DaySummed{Cents: cents})
	return nil
}

func payOut(ctx *bus.Context, tx pgx.Tx, m PayOut) error {
	_, err := tx.Exec(ctx, `INSERT INTO payout (day, cents) VALUES ($1::date, $2)`, m.Day, m.Cents)
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := open(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

func open(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool, migrations.Options{}); err != nil {
		return err
	}
	return run(ctx, pool)
}

// run settles until ctx ends.
func run(ctx context.Context, pool *pgxpool.Pool) error {
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	books, err := bus.NewEndpoint(b, "settlement", bus.EndpointOptions{}, bus.Saga(settlements), bus.HandleTx(sum),
		bus.HandleTx(payOut))
	if err != nil {
		return err
	}
	clock, err := scheduler.New(b, scheduler.Options{Owner: "shop"}, nightly)
	if err != nil {
		return err
	}
	host, err := edda.NewHost(books, clock)
	if err != nil {
		return err
	}
	if err := host.Install(ctx); err != nil {
		return err
	}
	return host.Run(ctx)
}
