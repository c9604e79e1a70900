package eddaotel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaotel"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// site is a database with a bus that has the hooks.
type site struct {
	*telescope
	pool   *pgxpool.Pool
	schema string
	bus    *bus.Bus

	mu     sync.Mutex
	events []event.Event
}

func newSite(s *telescope) *site {
	s.Helper()
	pool := pgdev.Pool(s)
	at := &site{telescope: s, pool: pool, schema: pgdev.Schema(s)}
	pgtest.Migrate(s, pool, at.schema)
	o := bus.Options{Schema: at.schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
		Events: func(e event.Event) {
			at.mu.Lock()
			defer at.mu.Unlock()
			at.events = append(at.events, e)
		}}
	s.Bus(&o)
	var err error
	if at.bus, err = bus.New(pool, o); err != nil {
		s.Fatal(err)
	}
	return at
}

// run runs an endpoint or a relay until stop, or the end of the test.
func (s *site) run(r interface {
	Install(ctx context.Context) error
	Run(ctx context.Context) error
}, err error) (stop func()) {
	s.Helper()
	if err == nil {
		err = r.Install(s.Context())
	}
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop)
	return stop
}

func (s *site) exec(sql string, args ...any) {
	s.Helper()
	pgtest.Exec(s, s.pool, strings.ReplaceAll(sql, "edda.", pgx.Identifier{s.schema}.Sanitize()+"."), args...)
}

// until waits for a condition of the exporter or the events.
func (s *site) until(what string, done func() bool) {
	s.Helper()
	deadline, look := time.NewTimer(pgdev.Patience(20*time.Second)), time.NewTicker(3*time.Millisecond)
	defer deadline.Stop()
	defer look.Stop()
	for !done() {
		select {
		case <-deadline.C:
			s.Fatalf("waited in vain until %s\n%s", what, s.tree())
		case <-look.C:
		}
	}
}

// untilSpans waits for n spans of a name.
func (s *site) untilSpans(n int, name string) {
	s.Helper()
	s.until(fmt.Sprintf("there are %d spans %s", n, name), func() bool {
		found := 0
		for _, span := range s.exporter.GetSpans() {
			if span.Name == name {
				found++
			}
		}
		return found >= n
	})
}

func (s *site) send(ctx context.Context, m saga.Message, o ...saga.SendOption) {
	s.Helper()
	if _, err := s.bus.Send(ctx, m, o...); err != nil {
		s.Fatal(err)
	}
}

// A batch of 40 messages is settled once, with a link to each call that records the fate of its message.
func TestStoryOfABatch(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	policy := func(recoverability.Failure) recoverability.Decision { return recoverability.DeadLetter() }
	books := func() (*bus.Endpoint, error) {
		return bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{Concurrency: 1, BatchMax: 60, Policy: policy},
			bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m placed) error {
				if m.Order == "17" {
					return errors.New("no")
				}
				return nil
			}))
	}
	s.run(books())()
	s.request(func(ctx context.Context) {
		err := s.bus.InTx(ctx, func(tx pgx.Tx) error {
			for n := range 40 {
				if _, err := s.bus.SendTx(ctx, tx, placed{Order: fmt.Sprint(n)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	s.run(books())
	s.untilSpans(1, "settle books")
	one := "	send placed\n		process books ~ send placed\n"
	tree := s.tree()
	if n := strings.Count(tree, one); n != 39 || strings.Count(tree, "process books !_OTHER") != 1 {
		t.Errorf("%d calls are as they should be, want 39, and one that failed", n)
	}
	if want := "\nsettle books ~ process books dead, process books handled\n"; !strings.Contains(tree, want) {
		t.Errorf("want the root%s%s", want, tree)
	}
	for _, span := range s.exporter.GetSpans() {
		if span.Name != "settle books" {
			continue
		}
		fates := map[string]int{}
		for _, link := range span.Links {
			fates[value(link.Attributes, "edda.fate")]++
		}
		count := value(span.Attributes, "messaging.batch.message_count")
		if fates["handled"] != 39 || fates["dead"] != 1 || count != "40" {
			t.Errorf("%v of %s messages, want 39 handled and 1 dead", fates, count)
		}
	}
}

// A call that ended well, and lost its instance to a concurrent transaction, is settled as conflicted. The message is
// handled again.
func TestStoryOfALostConflict(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	lost := false // steps of one instance come one after another
	s.run(bus.NewEndpoint(s.bus, "orders", bus.EndpointOptions{Concurrency: 1},
		bus.Saga(saga.Define("order", saga.Options{Store: saga.Optimistic},
			saga.StartedBy(func(m placed) string { return m.Order }, func(o *order, ctx *saga.Context, m placed) error {
				if !ctx.IsNew() && !lost {
					lost = true
					s.exec(`UPDATE edda.saga SET version = version + 1`)
				}
				return nil
			})))))
	s.send(t.Context(), placed{Order: "7"})
	s.untilSpans(1, "settle orders")
	s.exporter.Reset()
	s.send(t.Context(), placed{Order: "7"})
	s.untilSpans(2, "settle orders")
	s.want(`
send placed
	process orders ~ send placed
		settle orders ~ process orders conflicted
	process orders ~ send placed
		settle orders ~ process orders handled
`)
}

// A trace crosses a relay unchanged: the handlers in the other database belong to the trace of the sender here.
func TestStoryOfARelay(t *testing.T) {
	telescope := newTelescope(t, eddaotel.Options{})
	here, there := newSite(telescope), newSite(telescope)
	there.run(bus.NewEndpoint(there.bus, "payments", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, charge) error { return nil })))
	here.run(bus.NewRelay(here.bus, "payments", outbox.RelayOptions{Poll: 50 * time.Millisecond},
		func(ctx context.Context, messages []*saga.Delivery) []error {
			errs := make([]error, len(messages))
			for n, d := range messages {
				_, errs[n] = there.bus.Ingest(ctx, outbox.IngestOptions{From: "here", Endpoint: "payments"},
					outbox.IngestMessage{ID: d.Info.ID.String(), Kind: d.Info.Kind, Body: d.Body,
						Header: outbox.Envelope(&d.Info)})
			}
			return errs
		}, charge{}.Kind()))
	here.request(func(ctx context.Context) { here.send(ctx, charge{Order: "7"}) })
	there.untilSpans(1, "settle payments")
	here.untilSpans(1, "relay payments")
	here.want(`
request
	send charge
		process payments ~ send charge
			settle payments ~ process payments handled
		relay payments ~ send charge relayed
`)
}

// A leased call ends before its transaction, which is settled with it all the same. A fault that the handler does not
// return, here an answer without a receiver, is recorded there.
func TestStoryOfALeasedHandler(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	s.run(bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{},
		bus.Handle(func(*bus.Context, placed) error { return nil })))
	s.run(bus.NewEndpoint(s.bus, "payments", bus.EndpointOptions{}, charges()))
	s.send(t.Context(), placed{Order: "7"})
	s.untilSpans(1, "settle books")
	s.send(t.Context(), charge{Order: "7"})
	s.untilSpans(1, "settle payments")
	s.want(`
send placed
	process books ~ send placed
		settle books ~ process books handled
send charge
	process payments ~ send charge
		settle payments ~ process payments dead
`)
}

// The span of a batch that was rolled back has the class of the error.
func TestStoryOfARollback(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	s.run(bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(_ *bus.Context, tx pgx.Tx, _ placed) error { return nil })))()
	allow := s.refuseDeletes()
	s.send(t.Context(), placed{Order: "7"})
	stop := s.run(bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(_ *bus.Context, tx pgx.Tx, _ placed) error { return nil })))
	s.untilSpans(1, "settle books")
	allow()
	stop()
	if tree := s.tree(); !strings.Contains(tree, `
	process books ~ send placed
		settle books !SQLSTATE 53 ~ process books
`) {
		t.Errorf("want a call whose transaction was rolled back\n%s", tree)
	}
}

// A finish of a leased endpoint that was rolled back is tried again without a second call, and links to its span again.
func TestStoryOfAFinishThatIsTriedAgain(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	books := func() (*bus.Endpoint, error) {
		return bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{},
			bus.Handle(func(*bus.Context, placed) error { return nil }))
	}
	s.run(books())()
	allow := s.refuseDeletes()
	s.send(t.Context(), placed{Order: "7"})
	s.run(books())
	s.untilSpans(1, "settle books")
	allow()
	s.until("it is handled", func() bool { return strings.Contains(s.tree(), "process books handled") })
	if tree := s.tree(); strings.Count(tree, "\tprocess books ~ send placed\n") != 1 ||
		!strings.Contains(tree, "\t\tsettle books !SQLSTATE 53 ~ process books\n") {
		t.Errorf("want one call, with a finish that was rolled back and one that was not\n%s", tree)
	}
}

// refuseDeletes makes every deletion from the one queue fail, as if the disk were full, until allow is called.
func (s *site) refuseDeletes() (allow func()) {
	s.Helper()
	var id int
	err := s.pool.QueryRow(s.Context(), `SELECT id FROM `+pgx.Identifier{s.schema, "queue"}.Sanitize()).Scan(&id)
	if err != nil {
		s.Fatal(err)
	}
	s.exec(`CREATE FUNCTION edda.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE 'no room' USING ERRCODE = '53100'; END $$`)
	s.exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE DELETE ON edda.queue_%d FOR EACH ROW
		EXECUTE FUNCTION edda.refuse()`, id))
	return func() { s.Helper(); s.exec(fmt.Sprintf(`DROP TRIGGER refuse ON edda.queue_%d`, id)) }
}

// A program that sends with SQL passes the context as a header.
func TestContextFromSQL(t *testing.T) {
	s := newSite(newTelescope(t, eddaotel.Options{}))
	s.run(bus.NewEndpoint(s.bus, "books", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, placed) error { return nil })))
	s.exec(`SELECT edda.send(kind => 'placed', body => convert_to('{}', 'UTF8'), endpoint => 'books',
		header => '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}')`)
	s.untilSpans(1, "settle books")
	for _, span := range s.exporter.GetSpans() {
		if got := span.SpanContext.TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace %s, want that of the header", span.Name, got)
		}
	}
}
