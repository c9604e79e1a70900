package shop

import (
	"context"
	"log/slog"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/remote/contract"
	"github.com/edda-go/edda/internal/run"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote/broker"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Regions are those that there is a report on, each by a manifest of its name.
var Regions = []string{"north", "east", "south", "west"}

// Times are short here, so that what a killed process had in hand goes on soon. Real ones are minutes.
const (
	lostAfter = 4 * time.Second
	lease     = 3 * time.Second
	closing   = 5 * time.Second // for the reports in hand
)

// Run runs the shop until ctx ends.
func Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, p message.Publisher, s message.Subscriber) error {
	b, err := bus.New(pool, bus.Options{Logger: log})
	if err != nil {
		return err
	}
	submits, err := bus.NewEndpoint(b, "reports", bus.EndpointOptions{Concurrency: 8, Lease: lease},
		broker.Submit(contract.MakeReport{}.Kind(), p, broker.SubmitOptions{Topic: contract.Runs}))
	if err != nil {
		return err
	}
	if err := submits.Install(ctx); err != nil {
		return err
	}
	schedule, err := scheduler.New(pool, b, scheduler.Options{Owner: "shop", Logger: log, LostAfter: lostAfter,
		Reconcile: time.Second, Lease: lease, LeaseRenew: time.Second, LeaseAcquire: time.Second}, manifests()...)
	if err != nil {
		return err
	}
	takes, err := newTaker(pool, log, s) //nolint:contextcheck // a message has a context of its own
	if err != nil {
		return err
	}
	host, err := edda.NewHost(pool, submits, schedule, takes)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func manifests() (all []scheduler.Manifest) {
	for _, region := range Regions {
		all = append(all, scheduler.Manifest{
			Name: region, When: scheduler.Every(time.Second), Message: contract.MakeReport{Region: region},
			Misfire: scheduler.MisfireAll, Overlap: true,
			Retries: 20, RetryDelay: 200 * time.Millisecond, RetryMost: time.Second,
		})
	}
	return all
}

// taker is a Router that writes reports into the database.
type taker struct{ router *message.Router }

func newTaker(pool *pgxpool.Pool, log *slog.Logger, s message.Subscriber) (taker, error) {
	reports, err := scheduler.NewReports(pool, "")
	if err != nil {
		return taker{}, err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: closing}, stock.NewSlogLogger(log))
	if err != nil {
		return taker{}, err
	}
	router.AddConsumerHandler("runs", contract.Reports, s,
		broker.NewHandler(reports, broker.HandlerOptions{Logger: log}))
	return taker{router}, nil
}

// Run closes the Router when ctx ends. The subscriber of watermill-nats wants to be closed before its context ends.
func (t taker) Run(ctx context.Context) error {
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error { return t.router.Run(context.WithoutCancel(ctx)) })
	all.Go(func(ctx context.Context) error {
		<-ctx.Done()
		return t.router.Close()
	})
	return all.Wait()
}
