package shop

import (
	"context"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v4"
	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/remote/contract"
	"github.com/edda-go/edda/examples/remote/listen"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Customers are the customers that get invoices, each by a manifest of its name.
var Customers = []string{"bakery", "dairy", "garage", "school"}

// Times are short here, so that the work of a killed process is soon repeated. Real ones are minutes.
const (
	lostAfter = 4 * time.Second
	lease     = 3 * time.Second
)

// patience publishes a run again for as long as the broker is away. A policy that gives up costs an attempt of the run.
var patience = recoverability.Backoff(func() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0))
})

// Run runs the shop until ctx ends. It may begin before the broker does.
func Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, p message.Publisher,
	subscribe func() (message.Subscriber, error)) error {
	b, err := bus.New(pool, bus.Options{Logger: log})
	if err != nil {
		return err
	}
	submits, err := bus.NewEndpoint(b, "invoices", bus.EndpointOptions{Concurrency: 8, Lease: lease, Policy: patience},
		remote.Publish(contract.MakeInvoice{}.Kind(), p, remote.PublishOptions{Topic: contract.Invoices}))
	if err != nil {
		return err
	}
	if err := submits.Install(ctx); err != nil {
		return err
	}
	schedule, err := scheduler.New(b, scheduler.Options{Owner: "shop", Logger: log, LostAfter: lostAfter,
		Reconcile: time.Second, Lease: lease, LeaseRenew: time.Second, LeaseAcquire: time.Second}, manifests()...)
	if err != nil {
		return err
	}
	reports, err := scheduler.NewReports(pool, "")
	if err != nil {
		return err
	}
	host, err := edda.NewHost(submits, schedule, taker{reports, log, subscribe})
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func manifests() (all []scheduler.Manifest) {
	for _, customer := range Customers {
		all = append(all, scheduler.Manifest{
			Name: customer, When: scheduler.Every(time.Second), Message: contract.MakeInvoice{Customer: customer},
			Misfire: scheduler.MisfireAll, Overlap: true,
			Retries: 20, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: time.Second,
		})
	}
	return all
}

// taker writes reports on runs into the database. The broker redelivers a report that the shop was writing when it
// ended, whether the write succeeded or not.
type taker struct {
	reports   *scheduler.Reports
	log       *slog.Logger
	subscribe func() (message.Subscriber, error)
}

func (t taker) Run(ctx context.Context) error {
	//nolint:contextcheck // a message has a context of its own
	handle := remote.NewMessageHandler(t.reports, remote.HandlerOptions{Logger: t.log})
	return listen.Run(ctx, t.log, contract.Runs, t.subscribe, handle)
}
