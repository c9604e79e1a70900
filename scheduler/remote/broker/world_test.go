package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/edda-go/edda/scheduler/remote/broker"
	"github.com/jackc/pgx/v5/pgxpool"
)

type report struct{ Month string }

func (report) Kind() string { return "report.make" }

// The metadata of a submission, as docs/guide/remote.md has them.
const (
	runKey      = "edda_run"
	attemptKey  = "edda_run_attempt"
	manifestKey = "edda_manifest"
	dueKey      = "edda_due"
)

const (
	submissions = "reports.to-make"
	reports     = "run-reports"
)

// world is the program with the database, which submits reports, and the other side, where submissions come.
type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	bus    *bus.Bus
	owner  *bus.Bus // may create queues
	store  *scheduler.Store
	client *broker.Client // of the other side

	broker *gochannel.GoChannel
	came   <-chan *message.Message
	mu     sync.Mutex // guards what follows
	away   error      // what Publish returns
	left   int        // for so many calls
}

// open runs both sides. The broker drops what has a UUID that it knows.
func open(t *testing.T, lostAfter time.Duration) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	w := &world{T: t, pool: pool, schema: schema}
	w.broker = gochannel.NewGoChannel(gochannel.Config{Persistent: true}, stock.NopLogger{})
	t.Cleanup(func() { _ = w.broker.Close() })
	quiet := slog.New(slog.DiscardHandler)
	once := middleware.Deduplicator{
		KeyFactory: func(m *message.Message) (string, error) { return m.UUID, nil },
		Repository: &seen{ids: map[string]bool{}},
	}
	publisher, err := once.PublisherDecorator()(w.broker)
	if err == nil {
		w.came, err = w.broker.Subscribe(context.WithoutCancel(t.Context()), submissions)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.client = &broker.Client{Publisher: publisher, Topic: reports, Logger: quiet}

	w.store, err = scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := scheduler.NewReports(pool, schema.Name())
	if err != nil {
		t.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, stock.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	router.AddConsumerHandler("runs", reports, w.broker,
		broker.NewHandler(taken, broker.HandlerOptions{Logger: quiet}))
	w.run(router.Run)
	<-router.Running()

	w.owner, err = bus.New(pgtest.Pool(t), bus.Options{Schema: schema.Name(), Logger: quiet})
	if err == nil {
		err = w.owner.InstallQueue(t.Context(), "reports", report{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.bus, err = bus.New(pool, bus.Options{Schema: schema.Name(), Logger: quiet,
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)}); err != nil {
		t.Fatal(err)
	}
	w.schedule(quiet, lostAfter, publisher)
	return w
}

// schedule runs the endpoint and the scheduler.
func (w *world) schedule(quiet *slog.Logger, lostAfter time.Duration, publisher message.Publisher) {
	w.Helper()
	e, err := bus.NewEndpoint(w.bus, "reports", bus.EndpointOptions{Poll: 20 * time.Millisecond, Policy: soon},
		broker.Submit(report{}.Kind(), faulty{w, publisher}, broker.SubmitOptions{Topic: submissions,
			Permanent: func(err error) bool { return errors.Is(err, errTooLarge) }}))
	if err == nil {
		err = e.Install(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	s, err := scheduler.New(w.bus, scheduler.Options{Owner: "shop", Logger: quiet, PollOnly: pgdev.Pooled(),
		Evaluate: 20 * time.Millisecond, Dispatch: 20 * time.Millisecond, Reconcile: 50 * time.Millisecond,
		LostAfter: lostAfter},
		scheduler.Manifest{Name: "reports", When: scheduler.OnDemand(), Message: report{"may"}, Retries: 100,
			RetryDelay: 10 * time.Millisecond})
	if err != nil {
		w.Fatal(err)
	}
	w.run(e.Run)
	w.run(s.Run)
}

var errAway, errTooLarge = errors.New("the broker is away"), errors.New("the message is too large")

func soon(f recoverability.Failure) recoverability.Decision {
	if permanent := (*saga.PermanentError)(nil); errors.As(f.Err, &permanent) {
		return recoverability.DeadLetter()
	}
	return recoverability.RetryIn(10 * time.Millisecond)
}

// seen remembers UUIDs, as the duplicate window of a stream does.
type seen struct {
	mu  sync.Mutex // guards ids
	ids map[string]bool
}

func (s *seen) IsDuplicate(_ context.Context, id string) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known = s.ids[id]
	s.ids[id] = true
	return known, nil
}

// faulty is a publisher that fails as the test says.
type faulty struct {
	w *world
	message.Publisher
}

func (f faulty) Publish(topic string, messages ...*message.Message) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.left > 0 {
		f.w.left--
		return f.w.away
	}
	return f.Publisher.Publish(topic, messages...)
}

// fail lets the next n calls of Publish fail.
func (w *world) fail(n int, with error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.away = n, with
}

func (w *world) run(do func(context.Context) error) {
	pgtest.Run(w.T, "Run", do)
}

// trigger fires the manifest, as soon as the scheduler has declared it.
func (w *world) trigger() (run saga.ID) {
	w.Helper()
	w.until("the manifest is there", func() bool {
		id, err := w.store.Trigger(w.Context(), "reports", nil, scheduler.TriggerOptions{})
		run = id
		return err == nil
	})
	return run
}

// next is the next submission.
func (w *world) next() *message.Message {
	w.Helper()
	select {
	case m := <-w.came:
		m.Ack()
		return m
	case <-time.After(pgdev.Patience(20 * time.Second)):
		w.Fatal("nothing was submitted")
	}
	return nil
}

// nextRun is the next submission, which is committed here.
func (w *world) nextRun() (*message.Message, remote.Run) {
	w.Helper()
	m := w.next()
	r, err := broker.RunOf(m)
	if err != nil {
		w.Fatalf("%v: %v", m.Metadata, err)
	}
	w.until("it is submitted", func() bool { return w.beating(r.ID) })
	return m, r
}

// beating reports whether the submission of a run is committed.
func (w *world) beating(run saga.ID) bool {
	var beating bool
	err := w.pool.QueryRow(w.Context(), w.schema.Render(`SELECT r.beat IS NOT NULL AND NOT EXISTS (SELECT FROM
		:schema.queue_1) FROM :schema.run r WHERE r.id = $1`), run).Scan(&beating)
	return err == nil && beating
}

// untilBeatsAgain waits until there is another sign of life.
func (w *world) untilBeatsAgain(run saga.ID) {
	w.Helper()
	pgtest.Exec(w.T, w.pool,
		w.schema.Render("UPDATE :schema.run SET beat = now() - interval '40 minutes' WHERE id = $1"), run)
	w.until("there is another sign of life", func() bool {
		var young bool
		err := w.pool.QueryRow(w.Context(), w.schema.Render(
			"SELECT beat > now() - interval '20 minutes' FROM :schema.run WHERE id = $1"), run).Scan(&young)
		return err == nil && young
	})
}

func (w *world) until(what string, done func() bool) {
	w.Helper()
	for began := time.Now(); !done(); <-time.After(5 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(20*time.Second) {
			w.Fatalf("waited in vain until %s", what)
		}
	}
}

func (w *world) runInfo(run saga.ID) scheduler.RunInfo {
	w.Helper()
	r, err := w.store.RunOf(w.Context(), run)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) untilState(run saga.ID, want scheduler.RunState) {
	w.Helper()
	w.until("the run is "+string(want), func() bool { return w.runInfo(run).State == want })
}

// untilDone waits until no message is in the queue.
func (w *world) untilDone() {
	w.Helper()
	w.until("the message is done", func() bool {
		var left int
		err := w.pool.QueryRow(w.Context(), w.schema.Render("SELECT count(*) FROM :schema.queue_1")).Scan(&left)
		return err == nil && left == 0
	})
}
