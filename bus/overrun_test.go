package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oneAttempt gives up at the first failure.
func oneAttempt(t *testing.T) recoverability.Policy {
	t.Helper()
	policy, err := recoverability.Retries{}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// A handler that ignores its context outlasts the server's timeout for an idle transaction: the batch is lost, and with
// it, once, went the count of its attempts.
func TestHandlerThatOverrunsIsNotRetriedForEver(t *testing.T) {
	t.Parallel()
	slow := func() { <-time.After(700 * time.Millisecond) }
	parts := map[string]bus.Part{
		"handler": bus.HandleTx(func(*bus.Context, pgx.Tx, place) error { slow(); return nil }),
		"saga": bus.Saga(saga.Define("slow", saga.Options{},
			saga.StartedBy(func(m place) string { return m.Order },
				func(*order, *saga.Context, place) error { slow(); return nil }))),
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.start("slow", bus.EndpointOptions{StepTimeout: 100 * time.Millisecond, Policy: oneAttempt(t)}, part)
			w.send(place{Order: "7"})
			w.untilEmpty("slow")
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 1
				AND error LIKE 'the handler took longer than StepTimeout%'`)
			w.want(0, `SELECT count(*) FROM edda.saga`)
		})
	}
}

// The setting of a pool for prepared statements must not matter, if the pool uses the types of parameters.
func TestEveryModeOfThePool(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.pool = poolIn(t, mode)
			w.bus = w.newBus(bus.Options{Schema: w.schema, AutoInstall: true, Wakeup: bus.PollOnly})
			got := make(chan string, 1)
			w.start("shipping", bus.EndpointOptions{}, bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m shipped) error {
				got <- m.Order
				return nil
			}))
			w.start("cards", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m pay) error {
				ctx.Reply(paid{Order: m.Order}, saga.WithID(ctx.Info().ID))
				return nil
			}))
			w.start("orders", bus.EndpointOptions{Poll: 20 * time.Millisecond}, bus.Saga(orders(saga.Optimistic)))
			w.send(place{Order: "7", Total: 1})
			if id := await(w, "the order to be shipped", got); id != "7" {
				t.Errorf("shipped %q", id)
			}
		})
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		if _, err := bus.New(poolIn(t, mode), bus.Options{}); err == nil {
			t.Errorf("a bus over a pool in mode %v", mode)
		}
	}
	if _, err := bus.New(poolWith(t, func(c *pgx.ConnConfig) { c.DescriptionCacheCapacity = 0 }),
		bus.Options{}); err == nil || !strings.Contains(err.Error(), "description_cache_capacity") {
		t.Errorf("a bus over a pool that keeps no descriptions: %v", err)
	}
}

func poolIn(t *testing.T, mode pgx.QueryExecMode) *pgxpool.Pool {
	t.Helper()
	return poolWith(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
}

func poolWith(t *testing.T, set func(*pgx.ConnConfig)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	set(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
