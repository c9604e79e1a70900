package main

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/spf13/cobra"
)

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for line, part := range map[string]string{
		"quue":                                  `edda has no command quue; did you mean queue?`,
		"queue lst":                             `edda queue has no command lst; did you mean list?`,
		"queue list all":                        `unknown command "all" for "edda queue list"`,
		"queue list --wrong":                    "unknown flag: --wrong",
		"queue peek":                            "accepts 1 arg(s), received 0",
		"queue peek orders --after yesterday":   "want a time and an id",
		"queue peek orders --limit many":        `invalid argument "many"`,
		"queue peek orders --limit -1":          "must not be negative",
		"saga list --prefix 7":                  "--prefix needs the name of the saga",
		"saga list --after 7":                   "want SAGA/KEY",
		"saga show order":                       "accepts 2 arg(s), received 1",
		"dead show first":                       "first is not the number of a dead letter",
		"dead retry":                            "give numbers of dead letters, or a filter",
		"dead retry 1 -2":                       "unknown shorthand flag: '2' in -2",
		"dead retry 0":                          "0 is not the number of a dead letter",
		"dead discard 1":                        "--reason is missing",
		"dead discard --reason x":               "give numbers of dead letters, or a filter",
		"dead list --message 7":                 "--message 7",
		"migrate install":                       "requires at least 1 arg(s)",
		"migrate up now":                        `unknown command "now"`,
		"migrate status --timeout soon":         `invalid argument "soon"`,
		"dead discard 1 --reason x --timeout 1": "missing unit in duration",
	} {
		s := runWith(t.Context(), append(strings.Fields(line), "--database", "postgres://nobody@127.0.0.1:1/none")...)
		if s.code != exitUsage || s.out != "" || !strings.Contains(s.err, part) ||
			!strings.Contains(s.err, `--help" for its arguments and flags.`) {
			t.Errorf("edda %s: exit code %d, want 2 and %q\n%s%s", line, s.code, part, s.out, s.err)
		}
	}
}

func TestSchemaThatIsNoName(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"queue list", "migrate up", "migrate sql", "migrate grants --reader r"} {
		s := runWith(t.Context(), append(strings.Fields(line), "--schema", "pg_edda", "--database",
			"postgres://nobody@127.0.0.1:1/none")...)
		if s.code != exitUsage || !strings.Contains(s.err, "reserved by Postgres") {
			t.Errorf("%s: %+v", line, s)
		}
	}
}

// No database is named, and none is at pgx's default address.
func TestNoDatabaseIsNamed(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "PGHOST", "PGSERVICE"} {
		t.Setenv(name, "")
	}
	t.Setenv("PGPORT", "1")
	if s := runWith(t.Context(), "queue", "list"); s.code != exitFailed ||
		!strings.Contains(s.err, "No database was named") {
		t.Errorf("%+v", s)
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		s := runWith(t.Context(), append(path, "--help")...)
		if s.code != exitDone || !strings.Contains(s.out, "Examples:\n  ") || !strings.Contains(s.out, "--schema") {
			t.Errorf("%s --help: %+v", c.CommandPath(), s)
		}
		if c.HasSubCommands() {
			if again := runWith(t.Context(), path...); again.code != exitDone || again.out != s.out {
				t.Errorf("%s alone does not print its help: %+v", c.CommandPath(), again)
			}
		}
		for _, under := range c.Commands() {
			visit(under)
		}
	}
	visit((&tool{}).root())
}

const secret = "s3cret/with#%marks"

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ database, says string }{
		"nobody listens": {"postgres://me:" + url.QueryEscape(secret) + "@127.0.0.1:1/shop", "Is the server running"},
		"key and value":  {"host=127.0.0.1 port=1 user=me password='" + secret + "'", "Is the server running"},
		"no URL":         {"postgres://me:" + secret + "@127.0.0.1:1/shop", "the connection string is not a URL"},
		"a bad option":   {"postgres://me:" + url.QueryEscape(secret) + "@h/d?sslmode=maybe", "sslmode is invalid"},
		"a bad port":     {"host=h port=x password=" + secret, "the connection string cannot be used"},
		"no pairs":       {secret, "the connection string cannot be used"},
	} {
		s := runWith(t.Context(), "queue", "list", "--timeout", "5s", "--database", c.database)
		if s.code != exitFailed || !strings.Contains(s.err, c.says) {
			t.Errorf("%s: %+v", name, s)
		}
		for _, form := range []string{secret, url.QueryEscape(secret), "s3cret"} {
			if strings.Contains(s.err+s.out, form) {
				t.Errorf("%s: the password %q is shown: %+v", name, form, s)
			}
		}
	}
}

func TestBeginnersMistakes(t *testing.T) {
	w := empty(t)
	for _, line := range []string{"queue list", "queue peek orders", "saga list", "saga show order 7", "dead list",
		"dead retry 1", "migrate install orders"} {
		says(t, w.want(exitFailed, strings.Fields(line)...).err, "schema is not migrated", `"edda migrate up"`,
			"--schema")
	}
	w.want(exitDone, "migrate", "up")
	says(t, w.want(exitNotFound, "queue", "peek", "orders").err, `endpoint "orders"`, "edda migrate install",
		`"edda queue list"`)
	says(t, w.want(exitFailed, "migrate", "install", "Orders").err, "a-z, 0-9")
	says(t, w.want(exitFailed, "migrate", "install", "orders", "--kinds", "order.place,Bad Kind").err,
		`kind "Bad Kind"`)

	other, err := url.Parse(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	other.Path = "/nowhere"
	s := runWith(t.Context(), "queue", "list", "--database", other.String())
	if s.code != exitFailed || !strings.Contains(s.err, "There is no such database") {
		t.Errorf("%+v", s)
	}
}

// A role without rights gets an error that names who can help.
func TestMissingRights(t *testing.T) {
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	role := w.schema + "_reader"
	w.exec(`CREATE ROLE "` + role + `"`)
	t.Cleanup(func() {
		if _, err := w.pool.Exec(context.Background(), `DROP OWNED BY "`+role+`"; DROP ROLE "`+role+`"`); err != nil {
			t.Error(err)
		}
	})
	as := func(args ...string) said {
		return runWith(t.Context(), append(args, "--schema", w.schema, "--database", pgdev.DSN(t)+"&role="+role)...)
	}
	for _, line := range []string{"queue list", "dead list", "migrate install billing", "migrate status"} {
		s := as(strings.Fields(line)...)
		if s.code != exitFailed || !strings.Contains(s.err, "edda migrate grants") {
			t.Errorf("%s without rights: %+v", line, s)
		}
	}
	w.exec(w.want(exitDone, "migrate", "grants", "--reader", role).out)
	w.bury(1)
	for _, line := range []string{"migrate status", "migrate up", "queue list", "queue peek orders", "saga list",
		"dead list", "dead show 1"} {
		if s := as(strings.Fields(line)...); s.code != exitDone {
			t.Errorf("%s as a reader: %+v", line, s)
		}
	}
	for _, line := range []string{"dead retry 1", "dead discard 1 --reason x", "migrate install billing"} {
		s := as(strings.Fields(line)...)
		if s.code != exitFailed || !strings.Contains(s.err, "permission denied") ||
			!strings.Contains(s.err, "The role lacks a right") {
			t.Errorf("%s as a reader: %+v", line, s)
		}
	}
}

func TestTimeoutAndInterrupt(t *testing.T) {
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	w.bury(1)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM "`+w.schema+`".dead_letter FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	says(t, w.want(exitFailed, "dead", "retry", "1", "--timeout", "300ms").err, "300ms",
		"--timeout sets a different limit")

	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan said, 1)
	go func() { ended <- w.eddaIn(ctx, "dead", "retry", "1") }()
	for w.count(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'edda' AND wait_event_type = `+
		`'Lock' AND position('`+w.schema+`' IN query) > 0`) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the retry never waited")
		}
	}
	interrupt()
	select {
	case s := <-ended:
		if s.code != exitInterrupted || !strings.Contains(s.err, "interrupted") {
			t.Errorf("%+v", s)
		}
	case <-time.After(pgdev.Patience(20 * time.Second)):
		t.Fatal("an interrupted command goes on")
	}
}

func TestPasswordOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dsn := pgdev.DSN(t)
	with := strings.Replace(dsn, "@", ":hunter2@", 1)
	if strings.Contains(dsn, ":hunter2@") || strings.Count(dsn, "@") != 1 {
		t.Fatalf("the server of the tests has an address of another form: %d", len(dsn))
	}
	s := runWith(t.Context(), "migrate", "status", "--database", with, "--schema", "edda_nothing_here")
	if s.code != exitFailed || !strings.Contains(s.err, "can read a password") ||
		strings.Contains(s.err+s.out, "hunter2") {
		t.Errorf("%+v", s)
	}
}
