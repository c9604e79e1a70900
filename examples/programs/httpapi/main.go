package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Charge requests the payment of an order. The answer is Charged.
type Charge struct {
	Order string
	Cents int
}

// Charged answers Charge.
type Charged struct{ Order, Receipt string }

// Kind names the message.
func (Charge) Kind() string { return "payment.charge" }

// Kind names the message.
func (Charged) Kind() string { return "payment.charged" }

// provider is the other company.
type provider struct {
	client *http.Client
	url    string
}

// charge selects the reaction of the endpoint's policy by its error. The outcome of a call that broke off is unknown,
// so it is repeated with the same key; a refusal is final; a busy provider returns the time of the next try.
func (p *provider) charge(ctx *bus.Context, m Charge) error {
	answer, err := p.call(ctx, m)
	if err != nil {
		return fmt.Errorf("charge order %s: %w", m.Order, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch status := answer.StatusCode; {
	case status == http.StatusTooManyRequests:
		seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
		if err != nil {
			seconds = 60
		}
		return saga.RetryAfter(time.Duration(seconds)*time.Second,
			fmt.Errorf("charge order %s: the provider is busy", m.Order))
	case status >= 500:
		return fmt.Errorf("charge order %s: the provider answers %s", m.Order, answer.Status)
	case status >= 400:
		return saga.Permanent(fmt.Errorf("charge order %s: the provider answers %s", m.Order, answer.Status))
	}
	ctx.Reply(Charged{Order: m.Order, Receipt: answer.Header.Get("Location")})
	return nil
}

// call carries the id of the message, which is the same on every attempt: the provider charges once.
func (p *provider) call(ctx *bus.Context, m Charge) (*http.Response, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, saga.Permanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, saga.Permanent(err)
	}
	request.Header.Set("Idempotency-Key", ctx.Info().ID.String())
	return p.client.Do(request)
}

// endpoint makes up to fifty calls at a time. A program that dies leaves its messages to others, fifteen seconds later.
func endpoint(b *bus.Bus, p *provider) (*bus.Endpoint, error) {
	return bus.NewEndpoint(b, "payments", bus.EndpointOptions{Concurrency: 50, StepTimeout: time.Minute},
		bus.Handle(p.charge))
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		return err
	}
	payments, err := endpoint(b, &provider{client: &http.Client{Timeout: 5 * time.Second},
		url: os.Getenv("PAYMENT_URL")})
	if err != nil {
		return err
	}
	host, err := edda.NewHost(payments)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}
