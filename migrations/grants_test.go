package migrations_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
)

// roles are four roles of a test: the owner has migrated a schema and given the others their rights.
type roles struct {
	admin, owner *pgxpool.Pool
	schema       pg.Schema
	names        migrations.Roles
}

func withRoles(t *testing.T) roles {
	t.Helper()
	r := roles{admin: pgdev.Pool(t), schema: named(t, "")}
	name := r.schema.Name()
	r.names = migrations.Roles{Runtime: name + "_run", Sender: name + "_send", Reader: name + "_read"}
	all := []string{name + "_owner", r.names.Runtime, r.names.Sender, r.names.Reader}
	asAdmin := func(sql string) {
		t.Helper()
		if _, err := r.admin.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	for _, role := range all {
		asAdmin("CREATE ROLE " + quote(role))
	}
	t.Cleanup(func() {
		for _, role := range all {
			asAdmin("DROP OWNED BY " + quote(role) + " CASCADE; DROP ROLE " + quote(role))
		}
	})
	asAdmin("CREATE SCHEMA " + quote(name) + " AUTHORIZATION " + quote(all[0]))
	r.owner = poolAs(t, all[0])
	if err := migrations.Up(t.Context(), r.owner, migrations.Options{Schema: name}); err != nil {
		t.Fatal(err)
	}
	r.install(t, "early")
	for range 2 {
		script, err := migrations.Grants(name, r.names)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.owner.Exec(t.Context(), script); err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
	}
	r.install(t, "late")
	return r
}

func (r roles) install(t *testing.T, endpoint string) {
	t.Helper()
	if _, err := r.owner.Exec(t.Context(), r.schema.Render("SELECT :schema.create_queue($1)"), endpoint); err != nil {
		t.Fatal(err)
	}
}

// may returns, for each table, the rights of a role: select, insert, update, delete, truncate, references, trigger.
func (r roles) may(t *testing.T, role string) map[string]string {
	t.Helper()
	rows, err := r.admin.Query(t.Context(), `SELECT relname, string_agg(
			CASE WHEN has_table_privilege($2, c.oid, p) THEN p
			     WHEN p IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') AND has_any_column_privilege($2, c.oid,
			p) THEN p || '(column)' END, ' ' ORDER BY n)
		FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',
		'TRIGGER']) WITH ORDINALITY u(p, n)
		WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p') GROUP BY relname`, quote(r.schema.Name()), role)
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]string{}
	var table string
	var rights *string
	if _, err := pgx.ForEachRow(rows, []any{&table, &rights}, func() error {
		may[table] = ""
		if rights != nil {
			may[table] = *rights
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return may
}

// A table that a migration adds needs a line here, with the intended rights.
func TestGrantsAreExact(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	const all, read, ring = "SELECT INSERT UPDATE DELETE", "SELECT", "SELECT INSERT TRUNCATE"
	runtime := map[string]string{
		"migration": read, "settings": read, "queue": read, "queue_1": all, "queue_2": all,
		"subscription": "SELECT INSERT DELETE", "subscription_generation": "SELECT UPDATE",
		"saga": all, "record": all, "saga_item": "SELECT INSERT DELETE", "audit": "SELECT INSERT DELETE",
		"dead_letter": "SELECT INSERT DELETE", "discarded": all, "sent_id": all,
		"lane": all, "parked": all,
		"lease":             "SELECT INSERT UPDATE",
		"concurrency_limit": "SELECT INSERT UPDATE",
		"slot":              all,
		"ticket":            all,
		"saga_counter":      all,
		"endpoint_setting":  "SELECT INSERT UPDATE",
		"dead_letter_job":   all,
		"dead_letter_edit":  "SELECT INSERT",
		"dead_letter_sent":  "SELECT INSERT DELETE",
		"session":           all,
		"in_flight":         all,
		"suspect":           all,
		"manifest":          all,
		"manifest_group":    all,
		"manifest_release":  all,
		"manifest_program":  all,
		"run":               all,
		"run_attempt":       all,
		"ring":              "SELECT UPDATE",
		"inbox":             "SELECT INSERT", "inbox_0": ring, "inbox_1": ring, "inbox_2": ring, "inbox_3": ring,
		"outbox": "SELECT INSERT", "outbox_0": ring, "outbox_1": ring, "outbox_2": ring, "outbox_3": ring,
		"history": "SELECT INSERT", "history_0": ring, "history_1": ring, "history_2": ring, "history_3": ring,
		"history_range": "SELECT INSERT", "history_range_0": ring, "history_range_1": ring, "history_range_2": ring,
		"history_range_3": ring,
		"history_life":    "SELECT INSERT", "history_life_0": ring, "history_life_1": ring, "history_life_2": ring,
		"history_life_3": ring,
	}
	sender := map[string]string{
		"migration": read, "settings": read, "queue": read, "queue_1": "INSERT", "queue_2": "INSERT",
		"subscription": read, "subscription_generation": "SELECT UPDATE(column)",
		"saga": "", "record": "", "saga_item": "", "audit": "",
		"dead_letter": "", "discarded": "", "sent_id": "SELECT INSERT", "lane": "", "parked": "",
		"lease":             "",
		"concurrency_limit": "",
		"slot":              "",
		"ticket":            "",
		"saga_counter":      "",
		"endpoint_setting":  "",
		"dead_letter_job":   "",
		"dead_letter_edit":  "",
		"dead_letter_sent":  "",
		"session":           "",
		"in_flight":         "",
		"suspect":           "",
		"manifest":          "",
		"manifest_group":    "",
		"manifest_release":  "",
		"manifest_program":  "",
		"run":               "",
		"run_attempt":       "",
		"ring":              "",
		"inbox":             "", "inbox_0": "", "inbox_1": "", "inbox_2": "", "inbox_3": "",
		"outbox": "", "outbox_0": "", "outbox_1": "", "outbox_2": "", "outbox_3": "",
		"history": "", "history_0": "", "history_1": "", "history_2": "", "history_3": "",
		"history_range": "", "history_range_0": "", "history_range_1": "", "history_range_2": "", "history_range_3": "",
		"history_life": "", "history_life_0": "", "history_life_1": "", "history_life_2": "", "history_life_3": "",
	}
	reader := map[string]string{}
	for table := range runtime {
		reader[table] = read
	}
	for role, want := range map[string]map[string]string{r.names.Runtime: runtime, r.names.Sender: sender,
		r.names.Reader: reader} {
		if diff := cmp.Diff(want, r.may(t, role)); diff != "" {
			t.Errorf("%s may (-want +got):\n%s", role, diff)
		}
		for _, sql := range []string{
			"CREATE TABLE :schema.mine ()", "CREATE FUNCTION :schema.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"DROP TABLE :schema.queue_1", "ALTER TABLE :schema.queue_2 ADD mine int", "TRUNCATE :schema.saga",
			"CREATE INDEX ON :schema.saga (started)", "DROP SCHEMA :schema CASCADE", "DELETE FROM :schema.migration",
		} {
			if _, err := poolAs(t, role).Exec(t.Context(), r.schema.Render(sql)); pgerr.Code(err) != "42501" {
				t.Errorf("%s: %s: %v, want 42501", role, sql, err)
			}
		}
	}
}

// A function that a migration adds needs an entry in the script. If the owner has revoked EXECUTE from PUBLIC for all
// functions that it creates, a runtime could not call a function without one.
func TestRuntimeMayCallEveryFunction(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	var missing []string
	if err := r.admin.QueryRow(t.Context(), `SELECT coalesce(array_agg(proname ORDER BY proname), '{}') FROM pg_proc p
		WHERE pronamespace = $1::regnamespace AND proname <> 'grant_queue'
		AND NOT EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = $2::regrole)`,
		quote(r.schema.Name()), quote(r.names.Runtime)).Scan(&missing); err != nil || len(missing) > 0 {
		t.Errorf("the script does not name %v: %v", missing, err)
	}
}

// In a schema with other tables the roles get no rights on those, keep the rights that they had, and so does PUBLIC.
func TestGrantsLeaveOtherTablesAlone(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	everybody := []string{r.names.Runtime, r.names.Sender, r.names.Reader}
	asOwner := func(sql string) {
		t.Helper()
		if _, err := r.owner.Exec(t.Context(), r.schema.Render(sql)); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	asOwner(`CREATE TABLE :schema.customer (id int, card text); GRANT USAGE ON SCHEMA :schema TO PUBLIC`)
	for _, role := range everybody {
		asOwner(`GRANT SELECT, REFERENCES ON :schema.customer TO ` + quote(role) +
			`; GRANT CREATE ON SCHEMA :schema TO ` + quote(role))
	}
	script, err := migrations.Grants(r.schema.Name(), r.names)
	if err != nil {
		t.Fatal(err)
	}
	asOwner(script)
	asOwner(`CREATE TABLE :schema.invoice (id int)`)
	r.install(t, "later")
	for role, queue := range map[string]string{r.names.Runtime: "SELECT INSERT UPDATE DELETE", r.names.Sender: "INSERT",
		r.names.Reader: "SELECT"} {
		may := r.may(t, role)
		if may["customer"] != "SELECT REFERENCES" || may["invoice"] != "" || may["queue_3"] != queue {
			t.Errorf("%s may %q with a table of the application, %q with a later one, and %q with a later queue", role,
				may["customer"], may["invoice"], may["queue_3"])
		}
	}
	var use, create bool
	if err := r.admin.QueryRow(t.Context(), `SELECT has_schema_privilege('public', $1, 'USAGE'),
		has_schema_privilege($2, $1, 'CREATE')`,
		r.schema.Name(), r.names.Runtime).Scan(&use, &create); err != nil || !use || !create {
		t.Errorf("everybody may use the schema: %v, the runtime may create in it: %v, %v", use, create, err)
	}
}

// A role that changes its part loses its former rights.
func TestGrantsTakeBackWhatARoleHad(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	script, err := migrations.Grants(r.schema.Name(), migrations.Roles{Sender: r.names.Runtime})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.owner.Exec(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	r.install(t, "later")
	if diff := cmp.Diff(r.may(t, r.names.Sender), r.may(t, r.names.Runtime)); diff != "" {
		t.Errorf("what was the runtime differs from the sender (-sender +runtime):\n%s", diff)
	}
}

// Values that are put into a script are not substituted again: names may contain the placeholders of other values.
func TestGrantsKeepNamesWithMarksInThem(t *testing.T) {
	t.Parallel()
	script, err := migrations.Grants("a:role", migrations.Roles{Runtime: `x" SUPERUSER; -- :schema`})
	if err != nil {
		t.Fatal(err)
	}
	if want := `GRANT USAGE ON SCHEMA "a:role" TO "x"" SUPERUSER; -- :schema";` +
		"\n"; !strings.Contains(script, want) {
		t.Errorf("the script has not %s:\n%s", want, script)
	}
}

// If functions were found by the search path, a role that may create objects could replace a function of Edda by its
// own, or make it run as its owner.
func TestFunctionsRunAsTheirCaller(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	var unsafe []string
	if err := r.admin.QueryRow(t.Context(), `SELECT coalesce(array_agg(proname), '{}') FROM pg_proc
		WHERE pronamespace = $1::regnamespace AND prosecdef`, quote(r.schema.Name())).Scan(&unsafe); err != nil ||
		len(unsafe) > 0 {
		t.Errorf("functions that run as their owner need a fixed search_path: %v %v", unsafe, err)
	}
	sender := poolAs(t, r.names.Sender)
	for _, path := range []string{"''", "pg_temp"} {
		for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
			err := pgx.BeginFunc(t.Context(), sender, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(),
					r.schema.Render(fmt.Sprintf(`SET TRANSACTION ISOLATION LEVEL %s; SET LOCAL search_path = %s;
					SELECT :schema.send('k', '', endpoint => 'early'), :schema.send('k', '', publish => true),
					       :schema.send('k', '', endpoint => 'late', id => gen_random_uuid()),
					       :schema.send_all('late', '[{"kind":"k","body":""}]', channel => 'c')`, isolation, path)))
				return err
			})
			if err != nil {
				t.Errorf("send under the search path %s, %s: %v", path, isolation, err)
			}
		}
	}
	if _, err := sender.Exec(t.Context(), r.schema.Render("SELECT body FROM :schema.queue_1")); pgerr.Code(
		err) != "42501" {
		t.Errorf("a sender read a queue: %v", err)
	}
	const take = `SELECT :schema.done('early', array_agg(m.claim), array_agg(m.message_id)) FROM :schema.take('early',
		10) m`
	for role, want := range map[string]string{r.names.Sender: "42501", r.names.Reader: "42501", r.names.Runtime: ""} {
		if _, err := poolAs(t, role).Exec(t.Context(), r.schema.Render("SET search_path = '';"+take)); pgerr.Code(
			err) != want {
			t.Errorf("%s took messages by the functions take and done: %v, want SQLSTATE %q", role, err, want)
		}
	}
}

// psql reads a script line by line, whatever the names in it are.
func TestGrantsRunInPsql(t *testing.T) {
	t.Parallel()
	admin, schema := pgdev.Pool(t), named(t, `x"y z'`)
	if err := migrations.Up(t.Context(), admin, migrations.Options{Schema: schema.Name()}); err != nil {
		t.Fatal(err)
	}
	role := schema.Name()[:20] + `"r '`
	if _, err := admin.Exec(t.Context(), "CREATE ROLE "+quote(role)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+quote(role)+"; DROP ROLE "+
			quote(role)); err != nil {
			t.Error(err)
		}
	})
	script, err := migrations.Grants(schema.Name(), migrations.Roles{Sender: role})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := psql(t, "\\set ON_ERROR_STOP on\n"+script); err != nil || out != "" {
		t.Fatalf("psql: %v\n%s\n%s", err, out, script)
	}
	if may := (roles{admin: admin, schema: schema}).may(t, role)["sent_id"]; may != "SELECT INSERT" {
		t.Errorf("the role may %q with sent_id", may)
	}
}

func TestGrantsRefuse(t *testing.T) {
	t.Parallel()
	for says, roles := range map[string]migrations.Roles{
		"at least one":       {},
		`"public" is no`:     {Reader: "public"},
		"control characters": {Sender: "a\nb"},
		"64 bytes":           {Runtime: strings.Repeat("r", 64)},
		"a different part":   {Runtime: "app", Reader: "app"},
	} {
		if _, err := migrations.Grants("", roles); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", roles, err, says)
		}
	}
	if _, err := migrations.Grants("pg_edda", migrations.Roles{Reader: "r"}); err == nil {
		t.Error("a schema of Postgres' own was taken")
	}
}

// The script that a DBA copies from the page is the script that is tested above.
func TestRolesPageShowsTheGrants(t *testing.T) {
	t.Parallel()
	script, err := migrations.Grants("", migrations.Roles{Runtime: "edda_runtime", Sender: "edda_sender",
		Reader: "edda_reader"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/operate/roles.md")
	if err != nil {
		t.Fatal(err)
	}
	if block := "```sql\n" + script + "```\n"; !strings.Contains(string(page), block) {
		t.Errorf("docs/operate/roles.md has not this block:\n%s", block)
	}
}
