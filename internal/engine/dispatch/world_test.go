package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// noTerm is the term of an engine that runs without the lease.
var noTerm lease.Term

// loopsWorld is a migrated schema with schedulers whose messages end in a table.
type loopsWorld struct {
	t      *testing.T
	owner  *pgxpool.Pool // prepares and checks; the code under test uses pool
	pool   *pgxpool.Pool
	schema pg.Schema
	sender *tableSender
}

func loopsOpen(t *testing.T) *loopsWorld {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	w := &loopsWorld{t: t, owner: pool, pool: pool, schema: schema}
	if pgtest.AsRuntime() || pgdev.Pooled() {
		w.owner = pgtest.Pool(t)
	}
	// Without unique constraints: a message that is sent twice has two rows.
	w.exec("CREATE TABLE :schema.sent_message (id uuid, run uuid, manifest text, attempt int, due timestamptz, " +
		"kind text); GRANT ALL ON :schema.sent_message TO PUBLIC")
	w.sender = &tableSender{schema: schema}
	return w
}

// tableSender writes messages into a table, in the caller's transaction.
type tableSender struct {
	schema pg.Schema
	before func(ctx context.Context, m saga.Message, f saga.Firing) error // may refuse, or take long
}

func (s *tableSender) SendTx(ctx context.Context, tx pgx.Tx, m saga.Message, o ...saga.SendOption) (saga.Sent, error) {
	rt := saga.Runtime{NewID: func() saga.ID { return NewRunID() }}
	out, err := rt.Compose(saga.Command, m, o...)
	if err != nil {
		return saga.Sent{}, err
	}
	f := out.Info.Firing
	if s.before != nil {
		if err := s.before(ctx, m, *f); err != nil {
			return saga.Sent{}, err
		}
	}
	_, err = tx.Exec(ctx, s.schema.Render("-- name: send\nINSERT INTO :schema.sent_message VALUES ($1, $2, $3, "+
		"$4, $5, $6)"),
		out.Info.ID, f.Run, f.Manifest, f.Attempt, f.Due, m.Kind())
	return saga.Sent{ID: out.Info.ID}, err
}

// scheduler returns an Engine whose loops a test calls itself. The given options replace the test's defaults.
func (w *loopsWorld) scheduler(change ...func(*Options)) *Engine {
	w.t.Helper()
	return w.schedulerOver(w.pool, change...)
}

func (w *loopsWorld) schedulerOver(pool *pgxpool.Pool, change ...func(*Options)) *Engine {
	w.t.Helper()
	o := Options{Logger: slog.New(slog.DiscardHandler), PollOnly: pgdev.Pooled()}
	for _, c := range change {
		c(&o)
	}
	s, err := New(pool, w.schema, w.sender, o)
	if err != nil {
		w.t.Fatal(err)
	}
	s.dispatcher.pace = pace{first: time.Microsecond, most: time.Millisecond}
	return s
}

func (w *loopsWorld) exec(sql string, args ...any) int64 {
	w.t.Helper()
	return pgtest.Exec(w.t, w.owner, w.schema.Render(sql), args...)
}

func (w *loopsWorld) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.owner.QueryRow(w.t.Context(), w.schema.Render(sql), args...).Scan(&n); err != nil {
		w.t.Fatalf("%v\n%s", err, sql)
	}
	return n
}

// text returns a result of one row and column.
func (w *loopsWorld) text(sql string, args ...any) (s string) {
	w.t.Helper()
	if err := w.owner.QueryRow(w.t.Context(), w.schema.Render(sql), args...).Scan(&s); err != nil {
		w.t.Fatalf("%v\n%s", err, sql)
	}
	return s
}

const hourly = `{"rule":{"kind":"every","every":3600000000000}}`

// hourlies inserts n manifests m1 … mn that became due a second ago.
func (w *loopsWorld) hourlies(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO :schema.manifest (name, definition, kind, body, due)
		SELECT 'm' || n, $2, 'ping', '{}', now() - interval '1 second' FROM generate_series(1, $1::int) n`, n, hourly)
}

// queued inserts queued runs, of manifests of their own named by prefix and number.
func (w *loopsWorld) queued(prefix string, n int, group int) {
	w.t.Helper()
	tx, err := w.owner.Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	defer tx.Rollback(w.t.Context())
	// foreign keys are not checked
	if _, err := tx.Exec(w.t.Context(), "SET LOCAL session_replication_role = replica"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), w.schema.Render(
		`WITH m AS (INSERT INTO :schema.manifest (name, definition, kind, body, group_id)
			VALUES ($1, '{"rule":{"kind":"on_demand"}}', 'ping', '{}', nullif($3::int, 0)) RETURNING id)
		INSERT INTO :schema.run (id, manifest_id, group_id, origin, state, due, ready)
		SELECT gen_random_uuid(), m.id, $3, 'manual', 'queued', now(), now() - n * interval '1 millisecond' FROM m,
		generate_series(1, $2::int) n`), prefix, n, group); err != nil {
		w.t.Fatal(err)
	}
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *loopsWorld) group(name string, most int, strict bool, priority int) (id int) {
	w.t.Helper()
	if err := w.owner.QueryRow(w.t.Context(),
		w.schema.Render(`INSERT INTO :schema.manifest_group (name, most, strict, priority)
		VALUES ($1, nullif($2::int, 0), $3, $4) RETURNING id`), name, most, strict, priority).Scan(&id); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// due makes a manifest due again, as time would.
func (w *loopsWorld) due(name string) {
	w.t.Helper()
	w.exec("UPDATE :schema.manifest SET due = now() - interval '1 second' WHERE name = $1", name)
}

// cycle runs one evaluation that must succeed.
func (w *loopsWorld) cycle(s *Engine) cycle {
	w.t.Helper()
	c, err := s.evaluator.cycle(w.t.Context(), noTerm)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// drain dispatches until no ready run is queued or waiting.
func (w *loopsWorld) drain(s *Engine) {
	w.t.Helper()
	w.await("every run is dispatched", func() bool {
		if w.count("SELECT count(*) FROM :schema.run WHERE state = 'queued' OR state = 'waiting' AND ready <= "+
			"clock_timestamp()") == 0 {
			return true
		}
		if _, err := s.dispatcher.pass(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		return false
	})
}

// end ends active runs, as the bus does after a handler.
func (w *loopsWorld) end(manifest, outcome string) int {
	w.t.Helper()
	return w.count(`SELECT coalesce(cardinality(:schema.run_end(array_agg(r.id), array_agg(r.attempt),
		array_agg($2::text), array_agg('because'::text))), 0)
		FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id WHERE m.name = $1 AND r.state = 'active'`,
		manifest, outcome)
}

// states returns the states of a manifest's runs, in their order.
func (w *loopsWorld) states(manifest string) string {
	w.t.Helper()
	return w.text(`SELECT coalesce(string_agg(r.origin || ' ' || r.state || ' ' || r.attempt, ', ' ORDER BY r.due,
		r.id), '')
		FROM :schema.run r JOIN :schema.manifest m ON m.id = r.manifest_id WHERE m.name = $1`, manifest)
}

// onceEach fails unless every run that was sent was sent once for each attempt, and every run that is marked as sent
// has its message.
func (w *loopsWorld) onceEach() {
	w.t.Helper()
	for what, sql := range map[string]string{
		"messages that were sent twice": `SELECT coalesce(sum(n - 1), 0)::int FROM (SELECT count(*) AS n
			FROM :schema.sent_message GROUP BY run, attempt) x`,
		"messages without an attempt": `SELECT count(*)::int FROM :schema.sent_message s WHERE NOT EXISTS (
			SELECT FROM :schema.run_attempt a WHERE a.run = s.run AND a.attempt = s.attempt AND a.message_id = s.id)`,
		"attempts without a message": `SELECT count(*)::int FROM :schema.run_attempt a WHERE NOT EXISTS (
			SELECT FROM :schema.sent_message s WHERE a.run = s.run AND a.attempt = s.attempt AND a.message_id = s.id)`,
		"runs whose attempts are not counted": `SELECT count(*)::int FROM :schema.run r
			WHERE r.attempt <> (SELECT count(*) FROM :schema.run_attempt a WHERE a.run = r.id)`,
		"due times with two runs": `SELECT coalesce(sum(n - 1), 0)::int FROM (
			SELECT count(*) AS n FROM :schema.run WHERE origin IN ('schedule', 'backfill') GROUP BY manifest_id,
			due) x`,
		"entries beside another": `SELECT coalesce(sum(n - 1), 0)::int FROM (SELECT count(*) AS n FROM :schema.run
			WHERE state IN ('waiting', 'queued') AND attempt = 0 AND origin IN ('schedule', 'dependent')
			GROUP BY manifest_id) x`,
	} {
		if n := w.count(sql); n != 0 {
			w.t.Errorf("%d %s", n, what)
		}
	}
}

// await checks repeatedly; the test's own deadline ends it.
func (w *loopsWorld) await(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(pgdev.Patience(30 * time.Second))
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// run runs a scheduler until the test or stop ends it.
func (w *loopsWorld) run(s *Engine) (stop func()) {
	w.t.Helper()
	return w.runs(s.Run)
}

// runs runs loops until the test or stop ends them.
func (w *loopsWorld) runs(loops ...func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() {
		group := run.NewGroup(ctx)
		for _, loop := range loops {
			group.Go(loop)
		}
		ended <- group.Wait()
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// logbook collects log lines.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), line)
}

func (l *logbook) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

var errRefused = errors.New("refused")

// atOnce runs n functions in parallel, and fails with the first error.
func (w *loopsWorld) atOnce(n int, do func(i int) error) {
	w.t.Helper()
	var all sync.WaitGroup
	faults := make([]error, n)
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				faults[i] = fmt.Errorf("%d: %w", i, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(faults...); err != nil {
		w.t.Fatal(err)
	}
}
