package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	stock "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/edda-go/edda/scheduler/remote"
	"github.com/jackc/pgx/v5/pgxpool"
)

type report struct{ Month string }

func (report) Kind() string { return "report.make" }

var quiet = slog.New(slog.DiscardHandler)

// program is the one with the database, which submits reports.
type program struct {
	*testing.T
	pool    *pgxpool.Pool
	schema  pg.Schema
	bus     *bus.Bus
	owner   *bus.Bus // may create queues
	store   *scheduler.Store
	reports *scheduler.Reports
}

func newProgram(t *testing.T) *program {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	p := &program{T: t, pool: pool, schema: schema}
	var err error
	if p.store, err = scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()}); err != nil {
		t.Fatal(err)
	}
	if p.reports, err = scheduler.NewReports(pool, schema.Name()); err != nil {
		t.Fatal(err)
	}
	p.owner, err = bus.New(pgtest.Pool(t), bus.Options{Schema: schema.Name(), Logger: quiet})
	if err == nil {
		err = p.owner.InstallQueue(t.Context(), "reports", report{}.Kind())
	}
	if err == nil {
		p.bus, err = bus.New(pool, bus.Options{Schema: schema.Name(), Logger: quiet,
			Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs the endpoint that submits, and the scheduler.
func (p *program) start(submit bus.Part, lostAfter time.Duration) {
	p.Helper()
	soon := func(f recoverability.Failure) recoverability.Decision {
		if permanent := (*saga.PermanentError)(nil); errors.As(f.Err, &permanent) {
			return recoverability.DeadLetter()
		}
		return recoverability.RetryIn(10 * time.Millisecond)
	}
	e, err := bus.NewEndpoint(p.bus, "reports", bus.EndpointOptions{Poll: 20 * time.Millisecond, Policy: soon}, submit)
	if err == nil {
		err = e.Install(p.Context())
	}
	if err != nil {
		p.Fatal(err)
	}
	s, err := scheduler.New(p.bus, scheduler.Options{Owner: "shop", Logger: quiet, PollOnly: pgdev.Pooled(),
		Evaluate: 20 * time.Millisecond, Dispatch: 20 * time.Millisecond, Reconcile: 50 * time.Millisecond,
		LostAfter: lostAfter},
		scheduler.Manifest{Name: "reports", When: scheduler.OnDemand(), Message: report{"may"}, Retries: 100,
			RetryDelay: 10 * time.Millisecond})
	if err != nil {
		p.Fatal(err)
	}
	p.run(e.Run)
	p.run(s.Run)
}

func (p *program) run(do func(context.Context) error) { pgtest.Run(p.T, "Run", do) }

// trigger fires the manifest, as soon as the scheduler has declared it.
func (p *program) trigger() (run saga.ID) {
	p.Helper()
	p.until("the manifest is there", func() bool {
		id, err := p.store.Trigger(p.Context(), "reports", nil, scheduler.TriggerOptions{})
		run = id
		return err == nil
	})
	return run
}

func (p *program) until(what string, done func() bool) {
	p.Helper()
	for began := time.Now(); !done(); <-time.After(5 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(20*time.Second) {
			p.Fatalf("waited in vain until %s", what)
		}
	}
}

func (p *program) runInfo(run saga.ID) scheduler.RunInfo {
	p.Helper()
	r, err := p.store.RunOf(p.Context(), run)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

func (p *program) state(run saga.ID) scheduler.RunState { return p.runInfo(run).State }

func (p *program) untilState(run saga.ID, want scheduler.RunState) {
	p.Helper()
	p.until("the run is "+string(want), func() bool { return p.state(run) == want })
}

// holds reports whether the condition, in SQL with :schema, holds.
func (p *program) holds(condition string, args ...any) (is bool) {
	err := p.pool.QueryRow(p.Context(), p.schema.Render("SELECT "+condition), args...).Scan(&is)
	return err == nil && is
}

// untilDone waits until no message is in the queue.
func (p *program) untilDone() {
	p.Helper()
	p.until("the message is done", func() bool { return p.holds("NOT EXISTS (SELECT FROM :schema.queue_1)") })
}

// untilBeating waits until the submission is committed: before that the other side's end would wait for it.
func (p *program) untilBeating(run saga.ID) {
	p.Helper()
	p.until("it is submitted", func() bool {
		return p.holds(`r.beat IS NOT NULL AND NOT EXISTS (SELECT FROM :schema.queue_1) FROM :schema.run r
			WHERE r.id = $1`, run)
	})
}

// untilBeatsAgain waits until there is another sign of life.
func (p *program) untilBeatsAgain(run saga.ID) {
	p.Helper()
	pgtest.Exec(p.T, p.pool,
		p.schema.Render("UPDATE :schema.run SET beat = now() - interval '40 minutes' WHERE id = $1"), run)
	p.until("there is another sign of life", func() bool {
		return p.holds("beat > now() - interval '20 minutes' FROM :schema.run WHERE id = $1", run)
	})
}

// submission is one that came to the other side.
type submission struct {
	remote.Run
	key, body string
}

// next is the next of what comes.
func next[T any](t testing.TB, came <-chan T) (one T) {
	t.Helper()
	select {
	case one = <-came:
	case <-time.After(pgdev.Patience(20 * time.Second)):
		t.Fatal("nothing was submitted")
	}
	return one
}

// worker is a client of either transport.
type worker interface {
	remote.Reporter
	Work(ctx context.Context, r remote.Run, every time.Duration, work func(ctx context.Context) error) error
}

// side is the other side, whatever the transport is.
type side struct {
	*program
	next    func() submission
	client  worker
	answers bool // a report on an attempt that is over is told so
}

// overBoth runs a test over HTTP and over a broker.
func overBoth(t *testing.T, lostAfter time.Duration, test func(s side)) {
	t.Run("HTTP", func(t *testing.T) {
		w := open(t, lostAfter)
		test(side{w.program, w.next, w.client, true})
	})
	t.Run("messages", func(t *testing.T) {
		w := openMessages(t, lostAfter)
		test(side{w.program, func() submission { _, s := w.nextRun(); return s }, w.client, false})
	})
}

// world is both programs over HTTP: the other side answers as the test says.
type world struct {
	*program
	client *remote.Client // of the other side

	came chan submission
	mu   sync.Mutex // guards say
	say  func(w http.ResponseWriter, s submission)
}

// open runs both sides. Until say is set the other side takes what comes.
func open(t *testing.T, lostAfter time.Duration) *world {
	t.Helper()
	w := &world{program: newProgram(t), came: make(chan submission, 1000)}
	w.answer(func(w http.ResponseWriter, _ submission) { w.WriteHeader(http.StatusAccepted) })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reports", w.receive)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	other := httptest.NewServer(mux)
	t.Cleanup(other.Close)
	handler := remote.NewHandler(w.reports, remote.HandlerOptions{Logger: quiet})
	here := httptest.NewServer(http.StripPrefix("/edda", handler))
	t.Cleanup(here.Close)
	w.client = &remote.Client{URL: here.URL + "/edda/", Logger: quiet}
	w.start(remote.Submit(report{}.Kind(), other.URL+"/reports", remote.SubmitOptions{
		// a request on a connection of its own is not made again by package net/http
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Header: http.Header{"authorization": {"Bearer 7"}, "Content-Type": {"application/x-report"}},
	}), lostAfter)
	return w
}

func (w *world) answer(say func(http.ResponseWriter, submission)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say = say
}

func (w *world) receive(answer http.ResponseWriter, r *http.Request) {
	run, err := remote.RunOf(r)
	if err != nil {
		w.Errorf("%v: %v", r.Header, err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Error(err)
	}
	if r.Header.Get("Authorization") != "Bearer 7" || r.Header.Get("Content-Type") != "application/x-report" {
		w.Errorf("headers %v", r.Header)
	}
	s := submission{run, r.Header.Get("Idempotency-Key"), string(body)}
	w.mu.Lock()
	say := w.say
	w.mu.Unlock()
	say(answer, s)
	w.came <- s
}

func (w *world) next() submission {
	w.Helper()
	return next(w, w.came)
}

const (
	submissions = "reports.to-make"
	reports     = "run-reports"
)

// messages is both programs over a broker, which drops a message with a UUID that it knows.
type messages struct {
	*program
	client *remote.MessageClient // of the other side

	broker *gochannel.GoChannel
	came   <-chan *message.Message
	mu     sync.Mutex // guards the fields below
	away   error      // what Publish returns
	left   int        // for so many calls
}

func openMessages(t *testing.T, lostAfter time.Duration) *messages {
	t.Helper()
	w := &messages{program: newProgram(t),
		broker: gochannel.NewGoChannel(gochannel.Config{Persistent: true}, stock.NopLogger{})}
	t.Cleanup(func() { _ = w.broker.Close() })
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
	w.client = &remote.MessageClient{Publisher: publisher, Topic: reports, Logger: quiet}
	router, err := message.NewRouter(message.RouterConfig{}, stock.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	router.AddConsumerHandler("runs", reports, w.broker,
		remote.NewMessageHandler(w.reports, remote.HandlerOptions{Logger: quiet}))
	w.run(router.Run)
	<-router.Running()
	w.start(remote.Publish(report{}.Kind(), faulty{w, publisher}, remote.PublishOptions{Topic: submissions,
		Permanent: func(err error) bool { return errors.Is(err, errTooLarge) }}), lostAfter)
	return w
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

var errTooLarge = errors.New("the message is too large")

// faulty is a publisher that fails as the test says.
type faulty struct {
	w *messages
	message.Publisher
}

func (f faulty) Publish(topic string, all ...*message.Message) error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	if f.w.left > 0 {
		f.w.left--
		return f.w.away
	}
	return f.Publisher.Publish(topic, all...)
}

// fail lets the next n calls of Publish fail.
func (w *messages) fail(n int, with error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.away = n, with
}

func (w *messages) next() *message.Message {
	w.Helper()
	m := next(w, w.came)
	m.Ack()
	return m
}

// nextRun is the next submission, which is committed here.
func (w *messages) nextRun() (*message.Message, submission) {
	w.Helper()
	m := w.next()
	r, err := remote.RunOfMessage(m)
	if err != nil || r.Token == "" || m.Metadata[watermill.KindKey] != "report.make" {
		w.Fatalf("%v: %v", m.Metadata, err)
	}
	for name := range m.Metadata {
		if strings.HasPrefix(name, "edda-run") || strings.HasPrefix(name, "edda-fire") {
			w.Errorf("metadata %s crosses, which a border drops", name)
		}
	}
	w.untilBeating(r.ID)
	return m, submission{r, m.Metadata[remote.IdempotencyKey], string(m.Payload)}
}

// endpoint runs an endpoint that gets a topic by an intake.
func (w *messages) endpoint(name, topic string, part bus.Part) {
	w.Helper()
	err := w.owner.InstallQueue(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	e, err := bus.NewEndpoint(w.bus, name, bus.EndpointOptions{DirectOnly: true, Poll: 20 * time.Millisecond}, part)
	if err == nil {
		err = e.Install(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	intake, err := watermill.NewIntake(w.bus, topic, w.broker, watermill.IntakeOptions{Endpoint: name, Logger: quiet})
	if err != nil {
		w.Fatal(err)
	}
	w.run(e.Run)
	w.run(intake.Run)
}
