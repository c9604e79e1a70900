//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations/migrate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// mistaken is what a beginner does: Run of one endpoint through b, with what query adds to the connection string.
func mistaken(t *testing.T, b *pgdev.Bouncer, query string, wakeup bus.Wakeup) (*bus.Endpoint, string) {
	t.Helper()
	schema := pgdev.Schema(t)
	if err := migrate.Up(t.Context(), pgdev.Pool(t), migrate.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	made, err := bus.New(openPool(t, b.DSN()+query),
		bus.Options{Schema: schema, AutoInstall: true, Wakeup: wakeup, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := bus.NewEndpoint(made, "tasks", bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, task) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return e, schema
}

func wantAdvice(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// Each Check must tell, whichever session it is given; ten make sure of that.
func checkOften(t *testing.T, e *bus.Endpoint) (err error) {
	t.Helper()
	for range 10 {
		if err = e.Check(t.Context()); err == nil {
			t.Error("Check found nothing wrong")
		}
	}
	return err
}

// The defaults of pgx and of the bus. Since 1.21 PgBouncer knows prepared statements, and then only the wake-up is
// wrong.
func TestDefaultsBehindAPooler(t *testing.T) {
	t.Parallel()
	b := ownBouncer(t, nil)
	e, _ := mistaken(t, b, "", bus.Notify)
	err := checkOften(t, e)
	wantAdvice(t, err, "PollOnly")
	t.Log(err)
	wantAdvice(t, e.Run(t.Context()), "PollOnly")
}

func TestPreparedStatementsBehindAPooler(t *testing.T) {
	t.Parallel()
	b := ownBouncer(t, nil)
	e, _ := mistaken(t, b, "", bus.PollOnly)
	if knowsStatements(b) {
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	err := checkOften(t, e)
	wantAdvice(t, err, "default_query_exec_mode=cache_describe", "PollOnly")
	t.Log(err)
	wantAdvice(t, e.Run(t.Context()), "default_query_exec_mode=cache_describe")
}

// Each query is described in one session and may be executed in another, however new the pooler is.
func TestDescribeExecBehindAPooler(t *testing.T) {
	t.Parallel()
	e, _ := mistaken(t, ownBouncer(t, map[string]string{"server_round_robin": "0"}),
		"&default_query_exec_mode=describe_exec", bus.PollOnly)
	wantAdvice(t, checkOften(t, e), "cache_describe")
}

// A PgBouncer that ignores what it does not know lets the bus listen, and nothing would be heard.
func TestListeningBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, robin := range []string{"0", "1"} {
		b := ownBouncer(t, map[string]string{"server_round_robin": robin,
			"ignore_startup_parameters": strings.Join([]string{
				"idle_in_transaction_session_timeout", "tcp_user_timeout", "tcp_keepalives_idle",
				"tcp_keepalives_interval",
				"tcp_keepalives_count"}, ",")})
		e, schema := mistaken(t, b, "&default_query_exec_mode=cache_describe", bus.Notify)
		if err := checkOften(t, e); !errors.Is(err, bus.ErrPooler) {
			t.Errorf("round robin %s: got %v, want bus.ErrPooler", robin, err)
		}
		s, err := scheduler.New(nobody{pool: openPool(t, b.DSN()+"&default_query_exec_mode=cache_describe"),
			schema: schema}, scheduler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantAdvice(t, s.Check(t.Context()), "PollOnly")
	}
}

// A Check holds one session and asks for another. Sixteen at a time, with two sessions, must not wait for each other.
// Whether two of them come to do so is chance, hence the rounds. So is what each finds: with two sessions, a client may
// be given the same one again each time that it asks.
func TestChecksShareTwoSessions(t *testing.T) {
	t.Parallel()
	b := ownBouncer(t, map[string]string{"default_pool_size": "2", "ignore_startup_parameters": strings.Join([]string{
		"idle_in_transaction_session_timeout", "tcp_user_timeout", "tcp_keepalives_idle", "tcp_keepalives_interval",
		"tcp_keepalives_count"}, ",")})
	e, _ := mistaken(t, b, "&default_query_exec_mode=cache_describe", bus.Notify)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	ended, found := make(chan error, 16), 0
	for range 3 {
		for range cap(ended) {
			go func() { ended <- e.Check(ctx) }()
		}
		for range cap(ended) {
			switch err := <-ended; {
			case errors.Is(err, bus.ErrPooler):
				found++
			case err != nil:
				t.Fatalf("got %v, want bus.ErrPooler or none", err)
			}
		}
	}
	if found == 0 {
		t.Error("no Check found the pooler")
	}
}

// nobody sends what no test fires.
type nobody struct {
	scheduler.Sender
	pool   *pgxpool.Pool
	schema string
}

func (n nobody) Database() (pool *pgxpool.Pool, schema string) { return n.pool, n.schema }

// A pooler that leaves each client its session is as good as none.
func TestPoolerOfSessions(t *testing.T) {
	t.Parallel()
	b := ownBouncer(t, map[string]string{"pool_mode": "session", "default_pool_size": "20",
		"ignore_startup_parameters": strings.Join([]string{
			"idle_in_transaction_session_timeout", "tcp_user_timeout", "tcp_keepalives_idle", "tcp_keepalives_interval",
			"tcp_keepalives_count"}, ",")})
	e, _ := mistaken(t, b, "", bus.Notify)
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a send or a migration meets first says the same, when it meets it.
func TestSendersAreToldToo(t *testing.T) {
	t.Parallel()
	b := ownBouncer(t, nil)
	if knowsStatements(b) {
		return
	}
	e, schema := mistaken(t, b, "&default_query_exec_mode=cache_describe", bus.PollOnly)
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	inEachSession(t, b.DSN(), func(context.Context, pgx.Tx) {}) // now there is more than one
	pool := openPool(t, b.DSN())
	made, err := bus.New(pool, bus.Options{Schema: schema, Wakeup: bus.PollOnly})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err = made.Send(t.Context(), task{}, saga.To("tasks")); strings.Contains(fmt.Sprint(err),
			"SQLSTATE 26000") || strings.Contains(fmt.Sprint(err), "SQLSTATE 42P05") {
			break
		}
	}
	wantAdvice(t, err, "default_query_exec_mode=cache_describe")
	t.Log(err)
	for range 20 {
		if err = migrate.Up(t.Context(), pool, migrate.Options{Schema: schema}); err != nil {
			break
		}
	}
	wantAdvice(t, err, "default_query_exec_mode=cache_describe")
}
