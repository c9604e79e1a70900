package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaprom"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// The endpoints, and the relay.
const (
	shop     = "shop"     // batches of HandleTx handlers
	accounts = "accounts" // batches of saga steps
	calls    = "calls"    // leased handlers
	border   = "border"   // a relay
)

// The routes that good messages take. Each ends in a row of chaos.effect.
const (
	batched = "batch"
	stepped = "saga"
	leased  = "leased"
	relayed = "relay"
)

var routes = []string{batched, stepped, leased, relayed}

// consumed is what each endpoint is subscribed to.
var consumed = map[string][]string{
	shop:     {order{}.Kind(), setting{}.Kind()},
	accounts: {pay{}.Kind(), oddPay{}.Kind()},
	calls:    {call{}.Kind(), oddCall{}.Kind()},
}

// Good messages.
type (
	order struct {
		N     int
		Route string // that the message took to come here
	}
	pay      struct{ N int }
	call     struct{ N int }
	outgoing struct{ N int }
)

// Messages whose handlers do harm.
type (
	setting struct{ SQL string } // is run in the transaction of the batch
	oddPay  struct{ N, Do int }
	oddCall struct{ Do int }
)

func (order) Kind() string    { return "good.order" }
func (pay) Kind() string      { return "good.pay" }
func (call) Kind() string     { return "good.call" }
func (outgoing) Kind() string { return "good.outgoing" }
func (setting) Kind() string  { return "hostile.setting" }
func (oddPay) Kind() string   { return "hostile.pay" }
func (oddCall) Kind() string  { return "hostile.call" }

func goodMessage(route string, n int) saga.Message {
	switch route {
	case batched:
		return order{N: n, Route: batched}
	case stepped:
		return pay{N: n}
	case leased:
		return call{N: n}
	default:
		return outgoing{N: n}
	}
}

// worker is the task of a worker process.
type worker struct {
	Gate bool // brings messages from outside, and runs no endpoint
	Seed uint64
	Rate int // attacks a second, of which the gate does half
}

// work is the life of a worker process.
func work(ctx context.Context, lw *lab.Worker) error {
	w := worker{}
	if err := lw.Read(&w); err != nil {
		return err
	}
	pool, err := lw.Pool(ctx, "hostile_runtime")
	if err != nil {
		return err
	}
	defer pool.Close()
	metrics := eddaprom.New(eddaprom.Options{})
	b, err := bus.New(pool, bus.Options{Events: metrics.Observe, Logger: lab.Log(slog.LevelWarn)})
	if err != nil {
		return err
	}
	operator, err := operate.New(pool, operate.Options{})
	if err != nil {
		return err
	}
	metrics.Watch(operator)
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	all := run.NewGroup(ctx)
	all.Go(func(ctx context.Context) error { return scrape(ctx, registry) })
	all.Go(func(ctx context.Context) error {
		if w.Gate {
			return w.gate(ctx, b, pool, lw.Calm)
		}
		return w.engine(ctx, b, pool)
	})
	return all.Wait()
}

// scrape reads the metrics as Prometheus would: a label that it cannot hold is an error here.
func scrape(ctx context.Context, registry *prometheus.Registry) error {
	for run.Sleep(ctx, time.Second) == nil {
		if _, err := registry.Gather(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("scrape: %w", err)
		}
	}
	return nil
}

// engine runs the endpoints and the relay.
func (w worker) engine(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool) error {
	policy, err := recoverability.Retries{Immediate: 1, Delayed: 1, Step: time.Second}.Policy()
	if err != nil {
		return err
	}
	o := bus.EndpointOptions{Policy: policy, StepTimeout: 500 * time.Millisecond, Poll: 200 * time.Millisecond,
		UnknownKindTimeout: 5 * time.Second, MaxCrashes: 3}
	h := handlers{pool: pool}
	batches, err := bus.NewEndpoint(b, shop, o, bus.HandleTx(h.order), bus.HandleTx(h.setting))
	if err != nil {
		return err
	}
	steps, err := bus.NewEndpoint(b, accounts, o, bus.Saga(accountSaga))
	if err != nil {
		return err
	}
	o.Lease = 3 * time.Second
	leases, err := bus.NewEndpoint(b, calls, o, bus.Handle(h.call), bus.Handle(h.oddCall))
	if err != nil {
		return err
	}
	relay, err := bus.NewRelay(b, border, outbox.RelayOptions{Poll: 200 * time.Millisecond,
		MaxRetryDelay: 200 * time.Millisecond, UnknownKindTimeout: 2 * time.Second}, h.forward, outgoing{}.Kind())
	if err != nil {
		return err
	}
	host, err := edda.NewHost(batches, steps, leases, relay)
	if err != nil {
		return err
	}
	return host.Run(ctx)
}

// gate brings what a broker might: any bytes.
func (w worker) gate(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool, calm <-chan struct{}) error {
	d := draw{rand.New(rand.NewPCG(w.Seed, 2))}
	begun := false
	for ctx.Err() == nil {
		select {
		case <-calm:
			<-ctx.Done()
			return nil
		default:
		}
		if !begun { // the quiet part ends with the first attack of the other half
			if err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM chaos.attack)").Scan(&begun); err != nil {
				return err
			}
		}
		if begun {
			if err := bring(ctx, b, pool, d); err != nil {
				return err
			}
		}
		_ = run.Sleep(ctx, 2*time.Second/time.Duration(max(1, w.Rate)))
	}
	return nil
}

func bring(ctx context.Context, b *bus.Bus, pool *pgxpool.Pool, d draw) error {
	from := outbox.IngestOptions{From: "outside", Endpoint: []string{"", shop, accounts, calls, border}[d.IntN(5)]}
	came, err := b.Ingest(ctx, from, outbox.IngestMessage{ID: d.id(), Kind: d.kind(), Header: d.header(),
		Body: d.body()})
	if err != nil {
		return fmt.Errorf("a message that arrived was an error: %w", err)
	}
	for _, a := range came {
		if a.State == outbox.Accepted || a.State == outbox.IngestDead {
			if _, err := pool.Exec(ctx, sql.Get("attacked"), pgID(a.ID), "arrive"); err != nil {
				return err
			}
		}
	}
	return nil
}

type handlers struct{ pool *pgxpool.Pool }

func (handlers) order(ctx *bus.Context, tx pgx.Tx, m order) error {
	if m.N <= 0 {
		return saga.Discard("not a good message")
	}
	_, err := tx.Exec(ctx, sql.Get("good"), m.Route, m.N)
	return err
}

// setting does to the batch's transaction what the message says.
func (handlers) setting(ctx *bus.Context, tx pgx.Tx, m setting) error {
	if _, err := tx.Exec(ctx, m.SQL); err != nil {
		return err
	}
	if strings.Contains(m.SQL, "overrun") { // it does not look at its context either
		time.Sleep(1500 * time.Millisecond)
	}
	_, err := tx.Exec(ctx, sql.Get("handled"), pgID(ctx.Info().ID))
	return err
}

func (h handlers) call(ctx *bus.Context, m call) error {
	if m.N <= 0 {
		return saga.Discard("not a good message")
	}
	ctx.Send(order{N: m.N, Route: leased})
	return nil
}

func (h handlers) oddCall(ctx *bus.Context, m oddCall) error {
	if err := misbehave(ctx, m.Do, func(m saga.Message, o ...saga.SendOption) { ctx.Send(m, o...) }); err != nil {
		return err
	}
	_, err := h.pool.Exec(ctx, sql.Get("handled"), pgID(ctx.Info().ID))
	return err
}

// forward is the other side of the relay. It panics at one kind, and refuses another.
func (h handlers) forward(ctx context.Context, messages []*saga.Delivery) []error {
	faults := make([]error, len(messages))
	for n, m := range messages {
		var good outgoing
		switch {
		case m.Info.Kind == "hostile.panic":
			panic("forward: " + m.Info.Kind)
		case m.Info.Kind == "hostile.poison":
			faults[n] = errors.New("the other side does not take it")
		case m.Info.Kind == good.Kind() && saga.JSON.Decode(m.Body, &good) == nil && good.N > 0:
			_, faults[n] = h.pool.Exec(ctx, sql.Get("good"), relayed, good.N)
		default:
			_, faults[n] = h.pool.Exec(ctx, sql.Get("handled"), pgID(m.Info.ID))
		}
		if faults[n] != nil {
			for k := n + 1; k < len(faults); k++ {
				faults[k] = outbox.ErrBehind
			}
			break
		}
	}
	return faults
}

// account is a saga that many messages share.
type account struct{ Paid int }

var accountSaga = saga.Define("account", saga.Options{},
	saga.StartedBy(func(m pay) string { return fmt.Sprint("account ", m.N%20) }, (*account).pay),
	saga.StartedBy(func(m oddPay) string { return fmt.Sprint("account ", m.N%20) }, (*account).oddPay))

func (a *account) pay(ctx *saga.Context, m pay) error {
	if m.N <= 0 {
		return saga.Discard("not a good message")
	}
	a.Paid++
	ctx.Send(order{N: m.N, Route: stepped})
	return nil
}

func (a *account) oddPay(ctx *saga.Context, m oddPay) error {
	if err := misbehave(ctx, m.Do, func(m saga.Message, o ...saga.SendOption) { ctx.Send(m, o...) }); err != nil {
		return err
	}
	return saga.Discard("it did no harm")
}

// misbehave is what a handler may do wrong.
func misbehave(ctx context.Context, what int, send func(saga.Message, ...saga.SendOption)) error {
	switch what % misdeeds {
	case 0:
		panic("a handler's bug\x00\xff")
	case 1:
		return errors.New(strings.Repeat("\x00\xfe error ", 1<<16))
	case 2:
		send(saga.Raw{Name: "nobody.consumes", Body: []byte("{}")})
	case 3:
		send(saga.Raw{Name: order{}.Kind(), Body: make([]byte, 3<<20)})
	case 4:
		send(order{}, saga.WithHeader("bad\xff", "\x00"))
	case 5:
		send(order{}, saga.To("no.such.endpoint"))
	case 6:
		<-ctx.Done()
		return ctx.Err()
	case 7:
		time.Sleep(800 * time.Millisecond) // longer than StepTimeout, and deaf
	case 8:
		var m map[string]int
		m["nil"] = 1 //nolint:staticcheck // the bug of a handler
	case 9:
		return lyingError{}
	case 10:
		return saga.RetryAfter(-time.Hour, errors.New("later"))
	case 11:
		runtime.Goexit()
	}
	return nil
}

const misdeeds = 13

// lyingError panics when somebody asks for its text.
type lyingError struct{}

func (lyingError) Error() string { panic("an error's bug") }
