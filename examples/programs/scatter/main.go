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
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// GetQuote starts a search for the best price, which ends with Quote.
type GetQuote struct {
	ID        string
	Article   string
	Suppliers []string
}

// AskSupplier goes to each supplier. The answer is Price.
type AskSupplier struct{ Supplier, Article string }

// Price answers AskSupplier.
type Price struct {
	Supplier string
	Cents    int
}

// Quote is the event at the end: the best price, or none when nobody answered in time.
type Quote struct {
	ID   string
	Best *Price
}

// TimeIsUp is the timeout of the search.
type TimeIsUp struct{}

// Kind names the message.
func (GetQuote) Kind() string { return "quote.get" }

// Kind names the message.
func (AskSupplier) Kind() string { return "supplier.ask" }

// Kind names the message.
func (Price) Kind() string { return "supplier.price" }

// Kind names the message.
func (Quote) Kind() string { return "quote.found" }

// Kind names the message.
func (TimeIsUp) Kind() string { return "quote.time-is-up" }

// page saga

// Search is the state: who has not answered yet, and the best so far.
type Search struct {
	Missing map[string]bool
	Best    *Price
}

func (s *Search) start(ctx *saga.Context, m GetQuote) error {
	if !ctx.IsNew() {
		return nil // they are asked already
	}
	s.Missing = map[string]bool{}
	for _, supplier := range m.Suppliers {
		s.Missing[supplier] = true
		ctx.Send(AskSupplier{Supplier: supplier, Article: m.Article})
	}
	ctx.Timeout(30*time.Second, TimeIsUp{})
	return nil
}

func (s *Search) priced(ctx *saga.Context, m Price) error {
	delete(s.Missing, m.Supplier)
	if s.Best == nil || m.Cents < s.Best.Cents {
		s.Best = &m
	}
	if len(s.Missing) > 0 {
		return nil
	}
	return s.end(ctx, TimeIsUp{})
}

func (s *Search) end(ctx *saga.Context, _ TimeIsUp) error {
	ctx.Publish(Quote{ID: ctx.Key(), Best: s.Best})
	ctx.Complete()
	return nil
}

// searches drops a price that comes after the end: nobody is interested any more.
var searches = saga.Define("search", saga.Options{},
	saga.StartedBy(func(m GetQuote) string { return m.ID }, (*Search).start),
	saga.OnReply((*Search).priced, saga.IfMissing(saga.MissingDiscard)),
	saga.OnTimeout((*Search).end))

// end

// ask looks into a price list in this database. A supplier that is asked over the network belongs into an endpoint of
// bus.Handle, when that is there: see ../httpapi.
func ask(ctx *bus.Context, tx pgx.Tx, m AskSupplier) error {
	price := Price{Supplier: m.Supplier}
	err := tx.QueryRow(ctx, `SELECT cents FROM price WHERE supplier = $1 AND article = $2`, m.Supplier,
		m.Article).Scan(&price.Cents)
	if err != nil {
		return err
	}
	ctx.Reply(price)
	return nil
}

// found is one who wants to know the end.
func found(_ *bus.Context, _ pgx.Tx, m Quote) error {
	if m.Best != nil {
		log.Printf("%s: %s has it for %d", m.ID, m.Best.Supplier, m.Best.Cents)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := search(ctx); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

func search(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrate.Up(ctx, pool, migrate.Options{}); err != nil {
		return err
	}
	b, err := bus.New(pool, bus.Options{AutoInstall: true})
	if err != nil {
		return err
	}
	var runners []edda.Runner
	for name, part := range map[string]bus.Part{"searches": bus.Saga(searches), "suppliers": bus.HandleTx(ask),
		"desk": bus.HandleTx(found)} {
		endpoint, err := bus.NewEndpoint(b, name, bus.EndpointOptions{}, part)
		if err != nil {
			return err
		}
		runners = append(runners, endpoint)
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}
