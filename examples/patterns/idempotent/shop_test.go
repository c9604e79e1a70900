package idempotent

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(eddatest.Main(m))
}

// shop takes orders into a database of its own. No endpoint handles them, so a test can count the messages sent.
type shop struct {
	t        *testing.T
	pool     *pgxpool.Pool
	operator *operate.Operator
	site     http.Handler
}

func open(t *testing.T) shop {
	t.Helper()
	pool := eddatest.Pool(t)
	b, err := bus.New(pool, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.InstallQueue(t.Context(), "orders", PlaceOrder{}.Kind()); err != nil {
		t.Fatal(err)
	}
	operator, err := operate.New(pool, operate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := shop{t: t, pool: pool, operator: operator}
	s.exec(`CREATE TABLE public.shop_order (id text PRIMARY KEY, customer text NOT NULL, cents int NOT NULL
		CHECK (cents > 0))`)
	place := Shop{Bus: b, Customer: func(r *http.Request) string { return r.Header.Get("Customer") }}.Place
	s.site = http.HandlerFunc(place)
	return s
}

func (s shop) exec(sql string) {
	s.t.Helper()
	if _, err := s.pool.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

// place sends a request, and returns the status and the location of the answer.
func (s shop) place(customer, key, body string) (status int, location string) {
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
	r.Header.Set("Customer", customer)
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	s.site.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Location")
}

// has checks how many orders there are, and how many messages.
func (s shop) has(want int) {
	s.t.Helper()
	var orders int
	err := s.pool.QueryRow(s.t.Context(), `SELECT count(*) FROM public.shop_order`).Scan(&orders)
	if err != nil || orders != want {
		s.t.Errorf("there are %d orders, want %d; %v", orders, want, err)
	}
	queues, err := s.operator.Queues().List(s.t.Context())
	if err != nil || len(queues) != 1 || queues[0].Ready != int64(want) {
		s.t.Errorf("the queues are %+v, want %d messages; %v", queues, want, err)
	}
}

const body = `{"cents":1990}`

// Of eight requests with one key, all at once, one places the order, and all have the same answer.
func TestRequestsWithOneKeyPlaceOneOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	var places sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			status, location := s.place("Ada", "k", body)
			if status != http.StatusCreated {
				t.Errorf("the answer is %d", status)
			}
			places.Store(location, true)
		})
	}
	all.Wait()
	s.has(1)
	n := 0
	places.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d locations, want 1", n)
	}
}

func TestKeyOfAnotherOrderIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.place("Ada", "k", body)
	if status, _ := s.place("Ada", "k", `{"cents":1991}`); status != http.StatusUnprocessableEntity {
		t.Errorf("the answer is %d", status)
	}
	s.has(1)
}

func TestCustomersHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, ada := s.place("Ada", "k", body)
	_, bob := s.place("Bob", "k", body)
	if ada == bob {
		t.Error("two customers have one order")
	}
	s.has(2)
}

// After a week Edda has deleted the key, but the order still has it.
func TestOldKeyIsRemembered(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, first := s.place("Ada", "k", body)
	s.exec(`DELETE FROM edda.sent_id`)
	if status, second := s.place("Ada", "k", body); status != http.StatusCreated || second != first {
		t.Errorf("the answer is %d %s, want the first one", status, second)
	}
	s.has(1)
}

// An order that is refused leaves nothing, and its key is free for the next try.
func TestRefusedOrderIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(`ALTER TABLE public.shop_order RENAME TO away`)
	if status, _ := s.place("Ada", "k", body); status != http.StatusServiceUnavailable {
		t.Errorf("the answer is %d, want that the shop is broken", status)
	}
	s.exec(`ALTER TABLE public.away RENAME TO shop_order`)
	s.has(0)
	if status, _ := s.place("Ada", "k", body); status != http.StatusCreated {
		t.Errorf("the answer is %d, want that it is placed", status)
	}
	s.has(1)
}

func TestRequestWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	for key, body := range map[string]string{"": body, "k": "no order", strings.Repeat("k", 256): body} {
		if status, _ := s.place("Ada", key, body); status != http.StatusBadRequest {
			t.Errorf("key %.10q, body %s: the answer is %d", key, body, status)
		}
	}
	s.has(0)
}
