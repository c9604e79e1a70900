//go:build bouncer

package bouncer_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	described = "&default_query_exec_mode=cache_describe"
	asked     = "&default_query_exec_mode=describe_exec"
)

// with are settings of PgBouncer in addition to those that let a bus listen.
func with(name, value string) map[string]string {
	all := maps.Clone(ignoring)
	all[name] = value
	return all
}

// mistaken is an endpoint through b, with query added to the connection string.
func mistaken(t *testing.T, b *pgdev.Bouncer, query string, wakeup bus.Wakeup) (*bus.Endpoint, *pgxpool.Pool, string) {
	t.Helper()
	schema, pool := pgdev.Schema(t), openPool(t, b.DSN()+query)
	if err := migrations.Up(t.Context(), pgdev.Pool(t), migrations.Options{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	e, err := bus.NewEndpoint(newBus(t, pool, schema, wakeup), "tasks", bus.EndpointOptions{}, bus.HandleTx(do))
	if err != nil {
		t.Fatal(err)
	}
	return e, pool, schema
}

func wantAdvice(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// Check finds a setting that does not work behind the pooler, whichever session it is given; ten times make sure of
// that. A pooler that leaves each client its session works like none. Since 1.21 PgBouncer knows prepared statements.
func TestCheckFindsMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		query    string
		wakeup   bus.Wakeup
		advice   []string // none: Check finds nothing wrong
		modern   []string // from 1.21 on
	}{
		"defaults": {nil, "", bus.Notify, []string{"PollOnly"}, []string{"PollOnly"}},
		"prepared statements": {nil, "", bus.PollOnly,
			[]string{"default_query_exec_mode=cache_describe", "PollOnly"}, nil},
		"describe_exec": {map[string]string{"server_round_robin": "0"}, asked, bus.PollOnly,
			[]string{"cache_describe"}, []string{"cache_describe"}},
		"listening": {with("server_round_robin", "0"), described, bus.Notify, []string{bus.ErrPooler.Error()},
			[]string{bus.ErrPooler.Error()}},
		"listening in turn": {ignoring, described, bus.Notify, []string{bus.ErrPooler.Error()},
			[]string{bus.ErrPooler.Error()}},
		"sessions": {with("pool_mode", "session"), "", bus.Notify, nil, nil},
		"nothing":  {nil, described, bus.PollOnly, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBouncer(t, pgdev.DSN(t), c.settings)
			e, _, _ := mistaken(t, b, c.query, c.wakeup)
			advice := c.advice
			if b.KnowsStatements() {
				advice = c.modern
			}
			if advice == nil {
				if err := e.Check(t.Context()); err != nil {
					t.Error(err)
				}
				return
			}
			for range 10 {
				wantAdvice(t, e.Check(t.Context()), advice...)
			}
			wantAdvice(t, e.Run(t.Context()), advice[0])
		})
	}
}

// sender is a scheduler.Sender of a pool, which sends nothing.
type sender struct {
	scheduler.Sender
	pool   *pgxpool.Pool
	schema string
}

func (s sender) Database() (pool *pgxpool.Pool, schema string) { return s.pool, s.schema }

func TestCheckOfASchedulerFindsThePooler(t *testing.T) {
	t.Parallel()
	_, pool, schema := mistaken(t, startBouncer(t, pgdev.DSN(t), ignoring), described, bus.Notify)
	s, err := scheduler.New(sender{pool: pool, schema: schema}, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantAdvice(t, s.Check(t.Context()), "PollOnly")
}

// A Check holds one session and asks for another. Sixteen at a time, with two sessions, must not wait for each other.
// Whether two of them come to do so is chance, hence the rounds. So is the finding of each: with two sessions, a client
// may be given the same one again each time that it asks.
func TestChecksShareTwoSessions(t *testing.T) {
	t.Parallel()
	e, _, _ := mistaken(t, startBouncer(t, pgdev.DSN(t), with("default_pool_size", "2")), described, bus.Notify)
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

// A send or a migration has no Check. The error of its first statement that fails has the same text.
func TestErrorsOfSendersNameTheRemedy(t *testing.T) {
	t.Parallel()
	b := startBouncer(t, pgdev.DSN(t), nil)
	if b.KnowsStatements() {
		return
	}
	e, _, schema := mistaken(t, b, described, bus.PollOnly)
	if err := e.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	// then there is more than one session
	if err := b.InEachSession(t.Context(), 4, func(pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	pool := openPool(t, b.DSN())
	sends := newBus(t, pool, schema, bus.PollOnly)
	for what, do := range map[string]func() error{
		"send":    func() error { _, err := sends.Send(t.Context(), task{}, saga.To("tasks")); return err },
		"migrate": func() error { return migrations.Up(t.Context(), pool, migrations.Options{Schema: schema}) },
	} {
		var err error
		for range 20 {
			if err = do(); err != nil && strings.Contains(err.Error(), "cache_describe") {
				break
			}
		}
		t.Log(what)
		wantAdvice(t, err, "default_query_exec_mode=cache_describe")
	}
}
