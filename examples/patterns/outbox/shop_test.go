package outbox

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
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

// call is a request that the other system got.
type call struct{ id, order string }

// world is a shop with the orders 7 and 8, and the system that it notifies.
type world struct {
	t         *testing.T
	pool      *pgxpool.Pool
	webhooks  *bus.Endpoint
	site      *http.ServeMux
	calls     chan call
	answers   chan int // statuses of the other system
	discarded chan event.Discarded
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pool: eddatest.Pool(t), site: http.NewServeMux(), calls: make(chan call),
		answers: make(chan int, 10), discarded: make(chan event.Discarded, 10)}
	other := httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(other.Close)
	b, err := bus.New(w.pool, bus.Options{Rare: w.note})
	must(t, err)
	w.webhooks, err = Webhooks{Client: other.Client()}.Endpoint(b)
	must(t, err)
	must(t, w.webhooks.Install(t.Context()))
	_, err = w.pool.Exec(t.Context(), `CREATE TABLE public.shop_order (id text PRIMARY KEY, webhook text NOT NULL,
		shipped timestamptz)`)
	must(t, err)
	_, err = w.pool.Exec(t.Context(), `INSERT INTO public.shop_order VALUES ('7', $1), ('8', $1)`, other.URL)
	must(t, err)
	db := stdlib.OpenDBFromPool(w.pool)
	t.Cleanup(func() { must(t, db.Close()) })
	w.site.HandleFunc("POST /orders/{id}/shipped", Shop{Bus: b, DB: db}.Ship)
	return w
}

func (w *world) answer(out http.ResponseWriter, r *http.Request) {
	var body struct{ Event, Order string }
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &body) != nil || body.Event != "order.shipped" {
		w.t.Errorf("called with %s, %v", text, err)
	}
	w.calls <- call{id: r.Header.Get("Webhook-Id"), order: body.Order}
	out.WriteHeader(<-w.answers)
}

func (w *world) note(e event.Event) {
	if d, ok := e.(event.Discarded); ok {
		w.discarded <- d
	}
}

// run runs the endpoint until the test ends.
func (w *world) run() {
	w.t.Helper()
	host, err := edda.NewHost(w.webhooks)
	must(w.t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- host.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		must(w.t, <-ended)
	})
}

func (w *world) ship(order string, want int) {
	w.t.Helper()
	out := httptest.NewRecorder()
	w.site.ServeHTTP(out, httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/orders/"+order+"/shipped",
		nil))
	if out.Code != want {
		w.t.Errorf("ship order %s: the answer is %d, want %d", order, out.Code, want)
	}
}

// queue returns how many calls wait.
func (w *world) queue() int64 {
	w.t.Helper()
	operator, err := operate.New(w.pool, operate.Options{})
	must(w.t, err)
	queues, err := operator.Queues().List(w.t.Context())
	must(w.t, err)
	if len(queues) != 1 {
		w.t.Fatalf("there are %d queues, want that of the webhooks", len(queues))
	}
	return queues[0].Ready
}

// The request is answered before the webhook is called. A call that fails is repeated with the same id.
func TestShippedOrderIsTold(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ship("7", http.StatusNoContent)
	w.answers <- http.StatusServiceUnavailable
	w.answers <- http.StatusNoContent
	w.run()
	first, second := <-w.calls, <-w.calls
	if first != second || first.order != "7" || first.id == "" {
		t.Errorf("called with %+v and %+v, want order 7 under one id", first, second)
	}
}

// An order is notified once: only the first of two requests changes its row.
func TestOrderIsShippedOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ship("7", http.StatusNoContent)
	w.ship("7", http.StatusNotFound)
	w.ship("9", http.StatusNotFound)
	if n := w.queue(); n != 1 {
		t.Errorf("%d calls wait, want 1", n)
	}
}

// A message that cannot be sent takes the change of the row with it.
func TestNothingIsShippedWithoutItsMessage(t *testing.T) {
	t.Parallel()
	w := open(t)
	must(t, w.webhooks.Unsubscribe(t.Context(), CallWebhook{}.Kind()))
	w.ship("7", http.StatusServiceUnavailable)
	var waits bool
	must(t, w.pool.QueryRow(t.Context(), `SELECT shipped IS NULL FROM public.shop_order WHERE id = '7'`).Scan(&waits))
	if !waits {
		t.Error("the order is shipped, and nobody will be told")
	}
}

// No webhook is called for a change that was not committed: here its COMMIT is refused.
func TestNobodyIsToldOfWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	w := open(t)
	_, err := w.pool.Exec(t.Context(), `CREATE TABLE public.day (at timestamptz PRIMARY KEY);
		ALTER TABLE public.shop_order ADD FOREIGN KEY (shipped) REFERENCES public.day DEFERRABLE INITIALLY DEFERRED`)
	must(t, err)
	w.ship("7", http.StatusServiceUnavailable)
	if n := w.queue(); n != 0 {
		t.Errorf("%d calls wait, want none", n)
	}
}

// A system that is gone is not called again, and that is recorded.
func TestSystemThatIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.ship("7", http.StatusNoContent)
	w.ship("8", http.StatusNoContent)
	w.answers <- http.StatusGone
	w.answers <- http.StatusGone
	w.run()
	<-w.calls
	<-w.calls
	for range 2 {
		if d := <-w.discarded; d.Reason != "the other system wants no more calls" {
			t.Errorf("discarded: %s", d.Reason)
		}
	}
}
