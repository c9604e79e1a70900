package handlers

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(eddatest.Main(m))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const tables = `
	CREATE TABLE public.reservation (order_id text PRIMARY KEY, article text NOT NULL);
	CREATE TABLE public.stock (article text PRIMARY KEY, pieces int NOT NULL CHECK (pieces >= 0));
	CREATE TABLE public.letter (order_id text PRIMARY KEY);
	INSERT INTO public.stock VALUES ('hat', 1)`

// world is a shop with one hat, and the reports of its endpoints.
type world struct {
	t       *testing.T
	pool    *pgxpool.Pool
	bus     *bus.Bus
	handled chan string // endpoints
	failed  chan string
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pool: eddatest.Pool(t), handled: make(chan string, 100), failed: make(chan string, 100)}
	w.exec(tables)
	var err error
	w.bus, err = bus.New(w.pool, bus.Options{Events: func(e event.Event) {
		switch e := e.(type) {
		case event.Handled:
			w.handled <- e.Endpoint
		case event.Retried:
			w.failed <- e.Endpoint
		}
	}})
	must(t, err)
	return w
}

// run runs endpoints until the test ends.
func (w *world) run(runners []edda.Runner, err error) {
	w.t.Helper()
	must(w.t, err)
	host, err := edda.NewHost(runners...)
	must(w.t, err)
	must(w.t, host.Install(w.t.Context()))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- host.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		must(w.t, <-ended)
	})
}

func (w *world) exec(sql string) {
	w.t.Helper()
	_, err := w.pool.Exec(w.t.Context(), sql)
	must(w.t, err)
}

func (w *world) paid(order string) {
	w.t.Helper()
	_, err := w.bus.Publish(w.t.Context(), OrderPaid{Order: order, Article: "hat"}, saga.MustRoute())
	must(w.t, err)
}

// awaits waits for a report of each of the endpoints, in any order.
func awaits(t *testing.T, told <-chan string, endpoints ...string) {
	t.Helper()
	open := map[string]bool{}
	for _, e := range endpoints {
		open[e] = true
	}
	for len(open) > 0 {
		e := <-told
		if !open[e] {
			t.Errorf("endpoint %s too", e)
		}
		delete(open, e)
	}
}

// has checks how many rows a table has, or how many of some.
func (w *world) has(table string, want int) {
	w.t.Helper()
	var n int
	must(w.t, w.pool.QueryRow(w.t.Context(), `SELECT count(*) FROM public.`+table).Scan(&n))
	if n != want {
		w.t.Fatalf("%d rows of %s, want %d", n, table, want)
	}
}

// A handler that fails does not keep the other one from its work.
func TestHandlersApart(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.exec(`DROP TABLE public.letter`)
	w.run(apart(w.bus))
	w.paid("7")
	awaits(t, w.handled, "warehouse")
	if e := <-w.failed; e != "letters" {
		t.Errorf("endpoint %s has failed", e)
	}
	w.has("reservation", 1)
}

// The second handler fails, and takes the row of the first with it.
func TestHandlersTogether(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.run(together(w.bus))
	w.paid("7")
	awaits(t, w.handled, "warehouse")
	w.has("stock WHERE pieces = 0", 1)
	w.paid("8") // there is no hat for it
	<-w.failed
	w.has("reservation", 1)
}

func TestHandlersInAChain(t *testing.T) {
	t.Parallel()
	w := open(t)
	shipped := make(chan string, 10)
	w.run(chain(w.bus, func(_ *bus.Context, m Ship) error {
		shipped <- m.Order
		return nil
	}))
	w.paid("7")
	if order := <-shipped; order != "7" {
		t.Errorf("order %s is shipped", order)
	}
	w.has("reservation", 1)
}

func TestTwoSagasOfOneEvent(t *testing.T) {
	t.Parallel()
	w := open(t)
	must(t, w.bus.InstallQueue(t.Context(), "carrier", Ship{}.Kind()))
	w.run(twoSagas(w.bus))
	w.paid("7")
	awaits(t, w.handled, "shipping", "customer-care")
	for _, d := range []*saga.Definition{shipments, thanks} {
		if _, ok, err := w.bus.Instance(t.Context(), d, "7", nil); !ok || err != nil {
			t.Errorf("there is no %s: %v", d.Name(), err)
		}
	}
}

// Two consumers of a kind in one endpoint are refused, as the page describes.
func TestOneEndpointRefusesTwoConsumersOfAKind(t *testing.T) {
	t.Parallel()
	w := open(t)
	for what, parts := range map[string][]bus.Part{
		"two handlers":         {bus.HandleTx(reserve), bus.HandleTx(write)},
		"a saga and a handler": {bus.Saga(shipments), bus.HandleTx(write)},
		"two sagas":            {bus.Saga(shipments), bus.Saga(thanks)},
	} {
		_, err := bus.NewEndpoint(w.bus, "all", bus.EndpointOptions{}, parts...)
		if err == nil || !strings.Contains(err.Error(), "order.paid") {
			t.Errorf("%s: %v, want an error that names the kind", what, err)
		}
	}
}
