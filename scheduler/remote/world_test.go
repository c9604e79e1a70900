package remote_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
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

// submission is a request that came to the other side.
type submission struct {
	remote.Run
	key, body string
}

// world is the program with the database, which submits reports, and the other side, which answers as the test says.
type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	store  *scheduler.Store
	client *remote.Client // of the other side

	came chan submission
	mu   sync.Mutex // guards say
	say  func(w http.ResponseWriter, s submission)
}

// open runs both sides. Until say is set the other side takes what comes.
func open(t *testing.T, lostAfter time.Duration) *world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	w := &world{T: t, pool: pool, schema: schema, came: make(chan submission, 1000)}
	w.answer(func(w http.ResponseWriter, _ submission) { w.WriteHeader(http.StatusAccepted) })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /reports", w.receive)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	other := httptest.NewServer(mux)
	t.Cleanup(other.Close)

	quiet := slog.New(slog.DiscardHandler)
	store, err := scheduler.NewStore(pool, scheduler.StoreOptions{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	w.store = store
	reports, err := scheduler.NewReports(pool, schema.Name())
	if err != nil {
		t.Fatal(err)
	}
	handler := remote.NewHandler(reports, remote.HandlerOptions{Logger: quiet})
	here := httptest.NewServer(http.StripPrefix("/edda", handler))
	t.Cleanup(here.Close)
	w.client = &remote.Client{URL: here.URL + "/edda/", Logger: quiet}

	owner, err := bus.New(pgtest.Pool(t), bus.Options{Schema: schema.Name(), Logger: quiet})
	if err == nil {
		err = owner.InstallQueue(t.Context(), "reports", report{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(pool, bus.Options{Schema: schema.Name(), Logger: quiet,
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	if err != nil {
		t.Fatal(err)
	}
	soon := func(f recoverability.Failure) recoverability.Decision {
		if permanent := (*saga.PermanentError)(nil); errors.As(f.Err, &permanent) {
			return recoverability.DeadLetter()
		}
		return recoverability.RetryIn(10 * time.Millisecond)
	}
	e, err := bus.NewEndpoint(b, "reports", bus.EndpointOptions{Poll: 20 * time.Millisecond, Policy: soon},
		remote.Submit(report{}.Kind(), other.URL+"/reports", remote.SubmitOptions{
			// a request on a connection of its own is not made again by package net/http
			Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
			Header: http.Header{"authorization": {"Bearer 7"}, "Content-Type": {"application/x-report"}},
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := scheduler.New(b, scheduler.Options{Owner: "shop", Logger: quiet, PollOnly: pgdev.Pooled(),
		Evaluate: 20 * time.Millisecond, Dispatch: 20 * time.Millisecond, Reconcile: 50 * time.Millisecond,
		LostAfter: lostAfter},
		scheduler.Manifest{Name: "reports", When: scheduler.OnDemand(), Message: report{"may"}, Retries: 100,
			RetryDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w.run(e.Run)
	w.run(s.Run)
	return w
}

func (w *world) run(do func(context.Context) error) {
	pgtest.Run(w.T, "Run", do)
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
func (w *world) next() submission {
	w.Helper()
	select {
	case s := <-w.came:
		return s
	case <-time.After(pgdev.Patience(20 * time.Second)):
		w.Fatal("nothing was submitted")
	}
	return submission{}
}

func (w *world) until(what string, done func() bool) {
	w.Helper()
	for began := time.Now(); !done(); <-time.After(5 * time.Millisecond) {
		if time.Since(began) > pgdev.Patience(20*time.Second) {
			w.Fatalf("waited in vain until %s", what)
		}
	}
}

func (w *world) state(run saga.ID) scheduler.RunState {
	w.Helper()
	r, err := w.store.RunOf(w.Context(), run)
	if err != nil {
		w.Fatal(err)
	}
	return r.State
}

func (w *world) untilState(run saga.ID, want scheduler.RunState) {
	w.Helper()
	w.until("the run is "+string(want), func() bool { return w.state(run) == want })
}
