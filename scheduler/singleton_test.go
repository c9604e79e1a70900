package scheduler_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// singleTimes are for a replica whose term need not expire during the test. An attempt to acquire may take five
// seconds: if a busy machine delays it longer, the replica gives up, and if the attempt succeeds nevertheless, no
// replica uses that term.
var singleTimes = scheduler.SingletonOptions{Lease: 15 * time.Second, Acquire: 100 * time.Millisecond}

// brief is for a replica whose term ends without a release: it is short enough for a test to wait.
func brief(o *scheduler.SingletonOptions) { o.Lease = briefly }

const briefly = 3 * time.Second

// singleWorld is a migrated schema of one test, with replicas that bid for the lease singleton/sweep.
type singleWorld struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	leases *scheduler.Leases

	mu    sync.Mutex // guards the following fields
	lines []singleLine
	log   bytes.Buffer
	news  chan struct{} // of capacity 1
}

// singleLine is an event of a replica, by this process's clock.
type singleLine struct {
	who, what string
	epoch     int64
	at        time.Time
}

func singleOpen(t *testing.T) *singleWorld {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	leases, err := scheduler.NewLeases(pool, schema.Name())
	if err != nil {
		t.Fatal(err)
	}
	w := &singleWorld{t: t, pool: pool, schema: schema, leases: leases, news: make(chan struct{}, 1)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what they did:\n%+v\nlog:\n%s", w.lines, &w.log)
		}
	})
	return w
}

// Write appends to the log.
func (w *singleWorld) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(text)
}

func (w *singleWorld) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

func (w *singleWorld) note(who, what string, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, singleLine{who, what, epoch, time.Now()})
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// find waits for the n-th line of this kind, counted from 1, and returns it.
func (w *singleWorld) find(who, what string, n int) singleLine {
	w.t.Helper()
	for {
		if l, ok := w.seen(who, what, n); ok {
			return l
		}
		select {
		case <-w.news:
		case <-time.After(pgdev.Patience(25 * time.Second)):
			w.t.Fatalf("waited in vain for: %s %s", who, what)
		}
	}
}

func (w *singleWorld) seen(who, what string, n int) (singleLine, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lines {
		if l.who == who && l.what == what {
			if n--; n == 0 {
				return l, true
			}
		}
	}
	return singleLine{}, false
}

// replica makes a replica that runs run, with singleTimes unless change changes them.
func (w *singleWorld) replica(pool *pgxpool.Pool, who string, run func(scheduler.Term) error,
	change ...func(o *scheduler.SingletonOptions)) *scheduler.Singleton {
	w.t.Helper()
	o := singleTimes
	o.Schema, o.Holder, o.PollOnly = w.schema.Name(), who, o.PollOnly || pgdev.Pooled()
	o.Logger = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, c := range change {
		c(&o)
	}
	s, err := scheduler.NewSingleton(pool, "sweep", run, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// start runs a replica until stop, or the end of the test.
func (w *singleWorld) start(s *scheduler.Singleton) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ran; err != nil {
				w.t.Errorf("Run: %v", err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// holder returns a function that records when it begins and ends, and sends its term to terms.
func (w *singleWorld) holder(who string, terms chan<- scheduler.Term) func(scheduler.Term) error {
	return func(t scheduler.Term) error {
		if terms != nil {
			terms <- t
		}
		w.note(who, "begins", t.Epoch())
		<-t.Done()
		w.note(who, "ends", t.Epoch())
		return nil
	}
}

// hung returns faults for all statements of a lease: action for renewals; releases and bids get no answer.
func hung(action faultproxy.Action) []faultproxy.Fault {
	return []faultproxy.Fault{{Statement: "renew", Do: action}, {Statement: "release"}, {Statement: "acquire"}}
}

func (w *singleWorld) exec(sql string, args ...any) {
	w.t.Helper()
	pgtest.Exec(w.t, w.pool, w.schema.Render(sql), args...)
}

// jump moves the times of the lease, which has the effect of a jump of the database's clock in the other direction.
func (w *singleWorld) jump(d time.Duration) {
	w.t.Helper()
	w.exec("UPDATE :schema.lease SET acquired = acquired + $1, renewed = renewed + $1, expires = expires + $1", d)
}

func (w *singleWorld) lease() scheduler.LeaseInfo {
	w.t.Helper()
	list, err := w.leases.List(w.t.Context())
	if err != nil || len(list) != 1 {
		w.t.Fatalf("the leases: %+v, %v", list, err)
	}
	return list[0]
}

// leader begins a brief term of a, whose connections go through a proxy.
func (w *singleWorld) leader() (proxy *faultproxy.Proxy, terms chan scheduler.Term, term scheduler.Term) {
	w.t.Helper()
	proxy, pool := pgtest.Proxied(w.t, w.pool)
	terms = make(chan scheduler.Term, 9)
	w.start(w.replica(pool, "a", w.holder("a", terms), brief))
	return proxy, terms, <-terms
}

// ledger makes a table for guarded writes, and returns a function that counts the committed writes of each term.
func (w *singleWorld) ledger() (store func(tx pgx.Tx, of scheduler.Term) error, count func() map[int64]int) {
	w.t.Helper()
	table := pgx.Identifier{w.schema.Name(), "ledger"}.Sanitize()
	for _, sql := range []string{"CREATE TABLE " + table + " (epoch bigint NOT NULL)", "GRANT ALL ON " + table +
		" TO public"} {
		if _, err := pgdev.Pool(w.t).Exec(w.t.Context(), sql); err != nil {
			w.t.Fatal(err)
		}
	}
	insert := "INSERT INTO " + table + " VALUES ($1)"
	store = func(tx pgx.Tx, of scheduler.Term) error {
		_, err := tx.Exec(w.t.Context(), insert, of.Epoch())
		return err
	}
	return store, func() map[int64]int {
		rows, err := w.pool.Query(w.t.Context(), "SELECT epoch, count(*) FROM "+table+" GROUP BY epoch")
		if err != nil {
			w.t.Fatal(err)
		}
		counts := map[int64]int{}
		var epoch int64
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&epoch, &n},
			func() error { counts[epoch] = n; return nil }); err != nil {
			w.t.Fatal(err)
		}
		return counts
	}
}

func TestSingletonStatements(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "singleton.sql")
}

func TestSingletonOptions(t *testing.T) {
	t.Parallel()
	run := func(scheduler.Term) error { return nil }
	pool := pgdev.Pool(t)
	for says, o := range map[string]scheduler.SingletonOptions{
		"Renew is 11s and Lease is 30s, want a Lease of 3 × Renew": {Renew: 11 * time.Second},
		"Renew is 5s and Lease is 12s":                             {Lease: 12 * time.Second, Renew: 5 * time.Second},
		"Lease is -1s":                                             {Lease: -time.Second},
		"control characters":                                       {Holder: "a\nb"},
		"reserved by Postgres":                                     {Schema: "pg_x"},
	} {
		if _, err := scheduler.NewSingleton(pool, "sweep", run, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
	_, err := scheduler.NewSingleton(nil, "Sweep", nil, scheduler.SingletonOptions{})
	for _, says := range []string{"pool is nil", "run is nil", "lease name"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	s, err := scheduler.NewSingleton(pool, "sweep", run, scheduler.SingletonOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if of, more := s.Connections(); s.Name() != "singleton/sweep" || of != pool || more != 2 {
		t.Errorf("%s, %d connections", s.Name(), more)
	}
	if _, err := scheduler.NewSingleton(pool, "sweep", run,
		scheduler.SingletonOptions{Lease: 9 * time.Second, Renew: 3 * time.Second}); err != nil {
		t.Errorf("a lease of exactly three renewals: %v", err)
	}
}

// The holder's name comes from the options, else from EDDA_HOLDER, else from HOSTNAME, else it is the host's name;
// each new Singleton adds a different random part.
func TestSingletonSaysWhoItIs(t *testing.T) {
	replica := func(name string) string {
		t.Helper()
		s, err := scheduler.NewSingleton(pgdev.Pool(t), "sweep", func(scheduler.Term) error { return nil },
			scheduler.SingletonOptions{Holder: name})
		if err != nil {
			t.Fatal(err)
		}
		return s.Health().Self
	}
	t.Setenv("EDDA_HOLDER", "shop-7")
	t.Setenv("HOSTNAME", "pod-3")
	if a, b := replica("mine"), replica("mine"); a == b || !strings.HasPrefix(a, "mine/") ||
		!strings.HasPrefix(b, "mine/") {
		t.Errorf("%s, %s", a, b)
	}
	if a := replica(""); !strings.HasPrefix(a, "shop-7/") {
		t.Error(a)
	}
	t.Setenv("EDDA_HOLDER", "")
	if a := replica(""); !strings.HasPrefix(a, "pod-3/") {
		t.Error(a)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"", "a\nb"} {
		t.Setenv("HOSTNAME", none)
		if a := replica(""); !strings.HasPrefix(a, host+"/") {
			t.Errorf("%s, want the host's name, which is %s", a, host)
		}
	}
	t.Setenv("EDDA_HOLDER", "a\nb")
	if _, err := scheduler.NewSingleton(pgdev.Pool(t), "sweep", func(scheduler.Term) error { return nil },
		scheduler.SingletonOptions{}); err == nil ||
		!strings.Contains(err.Error(), "EDDA_HOLDER") {
		t.Errorf("a name with a line's end: %v", err)
	}
}
