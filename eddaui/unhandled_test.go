package eddaui_test

import (
	"strings"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bricks creates a schema with an endpoint of this name, which no program runs.
func bricks(t *testing.T) (pool *pgxpool.Pool, schema string) {
	t.Helper()
	pool, schema = newSchema(t)
	op, err := operate.New(pool, operate.Options{Schema: schema})
	if err == nil {
		err = op.Queues().Install(t.Context(), "bricks", "brick.lay")
	}
	if err != nil {
		t.Fatal(err)
	}
	return pool, schema
}

// A forgotten handler is reported on the first page, and on the page of its endpoint, before its messages are dead
// letters.
func TestPagesSayThatNobodyHandlesAKind(t *testing.T) {
	t.Parallel()
	pool, schema := bricks(t)
	put := func(n int, kind string) {
		pgtest.Exec(t, pool, `INSERT INTO `+schema+`.queue_1 (due, id, kind, header, body, first_failed, last_error)
			SELECT now() + interval '30 seconds', gen_random_uuid(), $2, '{}', '{}', now(), $3
			FROM generate_series(1, $1)`, n, kind, kind+": "+bus.ErrUnknownKind.Error())
	}
	pgtest.Exec(t, pool, `INSERT INTO `+schema+`.session (id, host, pid, queues, expires, locked, ended, died)
		VALUES (gen_random_uuid(), 'a host', 7, '{1}', now(), false, now(), true)`)
	s := serve(t, pool, schema, eddaui.Options{})
	for _, c := range []struct {
		n          int
		kind, want string
	}{
		{1, "brick.drop", "no program of this endpoint handles brick.drop, and 1 message waits. Without a handler"},
		{2, "brick.<b>", "no program of this endpoint handles brick.&lt;b&gt;, brick.drop, and 3 messages wait"},
	} {
		put(c.n, c.kind)
		for _, path := range []string{"/", "/endpoints/bricks"} {
			if body := s.get(path); !strings.Contains(body, c.want) ||
				!strings.Contains(body, "no process runs it, and ") ||
				strings.Contains(body, "no problems") {
				t.Errorf("%s does not say %q:\n%s", path, c.want, mainOf(body))
			}
		}
	}
}

// Functions that do not return are reported on the first page, and on the page of their endpoint, with their
// processes.
func TestPagesSayWhichProcessesHaveLeftFunctions(t *testing.T) {
	t.Parallel()
	pool, schema := bricks(t)
	s := serve(t, pool, schema, eddaui.Options{})
	for _, c := range []struct{ process, want string }{
		{`7, '{0,1}', now() - interval '1 s', NULL`, ""}, // does not renew its row
		{`8, '{2,0}', now() + interval '1 h', NULL`, ""}, // runs a different queue
		{`9, '{0,1}', now() + interval '1 h', NULL`,
			"1 function of the program does not return and keeps running in a host (process 9), whose log names it"},
		{`6, '{0,2}', now() + interval '1 h', NULL`,
			"3 functions of the program do not return and keep running in a host (process 6) and 1 more, whose log"},
	} {
		pgtest.Exec(t, pool, `INSERT INTO `+schema+`.session (id, host, queues, locked, started, pid, left_calls,
			expires, ended) VALUES (gen_random_uuid(), 'a host', '{0,1}', false, now(), `+c.process+`)`)
		for _, path := range []string{"/", "/endpoints/bricks"} {
			body := s.get(path)
			if says := strings.Contains(body, "not return"); says != (c.want != "") || !strings.Contains(body, c.want) {
				t.Errorf("%s does not say %q:\n%s", path, c.want, mainOf(body))
			}
		}
	}
}

// The first page names the schedules whose runs timed out, were lost, died or were skipped, with a remedy. The page of
// the schedules lists releases that run side by side.
func TestPagesSayWhatHappenedToSchedules(t *testing.T) {
	t.Parallel()
	pool, schema := newSchema(t)
	exec := func(sql string) { pgtest.Exec(t, pool, strings.ReplaceAll(sql, ":schema", schema)) }
	exec(`INSERT INTO :schema.manifest (name, definition, kind, body, skipped, skipped_at, orphaned_at)
		VALUES ('dead', '{}', 'k', '', 0, NULL, NULL), ('slow', '{}', 'k', '', 7, now(), NULL),
			('dropped', '{}', 'k', '', 0, NULL, now())`)
	exec(`INSERT INTO :schema.run (id, manifest_id, origin, state, due, ready, ended)
		SELECT gen_random_uuid(), m.id, 'manual', CASE m.name WHEN 'dead' THEN 'dead' ELSE 'timed_out' END, now(),
			now(), CASE m.name WHEN 'slow' THEN now() END FROM :schema.manifest m WHERE m.name <> 'dropped'`)
	exec(`INSERT INTO :schema.run_attempt (run, attempt, message_id, outcome, ended)
		SELECT r.id, n, r.id, 'lost', now() FROM :schema.run r, generate_series(1, 2) n
		WHERE r.state = 'dead'`)
	s := serve(t, pool, schema, eddaui.Options{})
	first := mainOf(s.get("/"))
	for _, want := range []string{
		`<strong>dead</strong>: <a href="./manifests/dead">1 run dead: the schedule does not fire until`,
		`<strong>slow</strong>: <a href="./manifests/slow">1 run timed out in the last 24 hours. The handler may still`,
		`<strong>dead</strong>: <a href="./manifests/dead">2 attempts lost in the last 24 hours`,
		`<strong>slow</strong>: <a href="./manifests/slow">due times passed without a run in the last 24 hours`,
		`<strong>dropped</strong>: <a href="./manifests/dropped">became an orphan in the last 24 hours`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the first page does not say %q:\n%s", want, first)
		}
	}
	exec(`INSERT INTO :schema.manifest_release (owner, digest, manifests, sums, groups)
		VALUES ('shop', 'a', '{dead,slow}', '{1,2}', '{}'), ('shop', 'b', '{dead}', '{9}', '{}')`)
	exec(`INSERT INTO :schema.manifest_program (id, release, host, pid, expires)
		SELECT gen_random_uuid(), number, 'pod', 7, now() + interval '1 hour' FROM :schema.manifest_release
		WHERE number = 1`)
	if page := mainOf(s.get("/manifests")); strings.Contains(page, "side by side") {
		t.Errorf("one release runs beside itself:\n%s", page)
	}
	exec(`INSERT INTO :schema.manifest_program (id, release, host, pid, expires)
		VALUES (gen_random_uuid(), 2, 'canary', 8, now() + interval '1 hour')`)
	page := mainOf(s.get("/manifests"))
	for _, want := range []string{"<h2>Several releases are running</h2>", "canary:8",
		"<td>dead </td><td>slow </td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the schedules does not say %q:\n%s", want, page)
		}
	}
}
