package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/migrations"
	"github.com/google/go-cmp/cmp"
)

func TestMigrate(t *testing.T) {
	w := empty(t)
	s := w.want(exitFailed, "migrate", "status")
	want := "| VERSION NAME APPLIED REMARK"
	files, err := filepath.Glob("../../migrations/[0-9]*_*.sql")
	if err != nil || len(files) != migrations.Version {
		t.Fatalf("%d files of migrations, %v", len(files), err)
	}
	for n, file := range files {
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".sql"), "_")
		want += fmt.Sprintf("\n| %d %s missing -", n+1, name)
	}
	w.prints(s.out, want)
	newest := fmt.Sprint(migrations.Version)
	says(t, s.err, `there is no schema "`+w.schema, "edda migrate up")
	w.prints(w.want(exitDone, "migrate", "up").out, `| Schema "SCHEMA" is now at version `+newest+`: `+newest+
		` of its migrations were missing.`)
	w.prints(w.want(exitDone, "migrate", "up").out, `| Schema "SCHEMA" is up to date, at version `+newest+`.`)
	w.prints(w.want(exitDone, "migrate", "up", "--json").out, `
		| {
		|  "schema": "SCHEMA",
		|  "version": `+newest+`,
		|  "applied": []
		| }`)
	says(t, w.want(exitDone, "migrate", "status", "--json").out, `"up_to_date": true`, `"name": "queues"`,
		`"breaking": false`)
	w.exec(`INSERT INTO edda.migration VALUES (99, E'less\x1b[2J', true)`)
	s = w.want(exitFailed, "migrate", "status")
	says(t, s.out, `less\x1b[2J`, "of a newer program, breaking")
	says(t, s.err, "refuses programs up to schema version "+newest, "newer edda")
	says(t, w.want(exitFailed, "queue", "list").err, "newer edda")
}

// If several migrate at the same time, each reports the migrations that it has applied.
func TestMigrateAtOnce(t *testing.T) {
	w := empty(t)
	said := make(chan said, 4)
	for range cap(said) {
		go func() { said <- w.edda("migrate", "up", "--json") }()
	}
	sum := 0
	for range cap(said) {
		var did struct{ Applied []int64 }
		s := <-said
		if err := json.Unmarshal([]byte(s.out), &did); err != nil || s.code != exitDone {
			t.Errorf("exit code %d, %v\n%s%s", s.code, err, s.out, s.err)
		}
		sum += len(did.Applied)
	}
	if sum != migrations.Version {
		t.Errorf("together they claim to have applied %d migrations of %d", sum, migrations.Version)
	}
}

func TestMigrateFromBehind(t *testing.T) {
	w := migrated(t)
	w.exec(`DELETE FROM edda.migration WHERE version = 5`)
	behind := fmt.Sprintf("has %d of the %d migrations this program needs", migrations.Version-1, migrations.Version)
	for _, command := range []string{"migrate status", "queue list", "dead list", "saga list",
		"migrate install orders"} {
		says(t, w.want(exitFailed, strings.Fields(command)...).err, behind, "edda migrate up")
	}
}

// The scripts need no database, and do the same as the Go calls.
func TestScripts(t *testing.T) {
	w := empty(t)
	nowhere := func(args ...string) said {
		t.Helper()
		s := runWith(t.Context(), append(args, "--database", "postgres://nobody@127.0.0.1:1/none", "--schema",
			w.schema)...)
		if s.code != exitDone || s.err != "" {
			t.Fatalf("%v: %+v", args, s)
		}
		return s
	}
	says(t, nowhere("migrate", "sql").out, `CREATE TABLE "`+w.schema+`".dead_letter`, "COMMIT;")
	grants := nowhere("migrate", "grants", "--runtime", `my "app"`).out
	says(t, grants, `TO "my ""app""";`, `'role/' || 'my "app"'`)
	says(t, nowhere("migrate", "grants", "--reader", "r", "--json").out, `"sql": "BEGIN;`)
	for _, wrong := range []string{"migrate grants", "migrate grants --reader public",
		"migrate grants --reader a --sender a"} {
		if s := w.edda(strings.Fields(wrong)...); s.code != exitUsage {
			t.Errorf("%s: %+v", wrong, s)
		}
	}
}

func TestQueues(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "queue", "list").out, `| No endpoint is installed in schema "SCHEMA".`)
	w.prints(w.want(exitDone, "migrate", "install", "billing", "orders", "--kinds", "order.place,order.paid").out, `
		| Endpoint billing is installed.
		| Endpoint orders is installed.`)
	says(t, w.want(exitDone, "migrate", "install", "orders", "--json").out, `"installed": [`, `"kinds": []`)
	w.exec(`SELECT edda.send('order.place', '{"ID": "7"}', '{"tenant": "acme\u001b[2J", "a": "b"}', 'orders')`)
	w.exec(`SELECT edda.send('order.place', '\xff00', '{}', 'orders', due => now() + interval '1 hour')`)
	w.exec(`UPDATE edda.queue_2 SET due = now() - interval '90 minutes' WHERE due < now()`)
	w.prints(w.want(exitDone, "queue", "list").out, `
		| ENDPOINT READY DELAYED CLAIMED PARKED LAG BY KINDS
		| billing 0 0 0 0 - endpoint order.paid order.place
		| orders 1 1 0 0 1h30m endpoint order.paid order.place`)
	var listed struct{ Queues []queueJSON }
	w.decode(&listed, "queue", "list", "--json")
	if q := listed.Queues[1]; q.Endpoint != "orders" || q.Ready != 1 || q.Delayed != 1 || q.Lag < 5400 ||
		q.OldestDue == nil ||
		!slices.Equal(q.Kinds, []string{"order.paid", "order.place"}) || listed.Queues[0].OldestDue != nil {
		t.Errorf("%+v", listed)
	}

	w.prints(w.want(exitDone, "queue", "peek", "orders").out, `
		| DUE ID KIND ATTEMPT CONFLICTS FIRST FAILED LAST ERROR BYTES HEADERS
		| TIME ID order.place 1 0 - - 11 a=b tenant=acme\x1b[2J
		| TIME ID order.place 1 0 - - 2 -`)
	w.prints(w.want(exitDone, "queue", "peek", "orders", "--body", "--body-bytes", "4", "--limit", "1").out, `
		| TIME ID order.place 1 0 11 a=b tenant=acme\x1b[2J
		|  {"ID… (4 of 11 bytes)
		| There may be more: --after TIME/ID`)
	w.prints(w.want(exitDone, "queue", "peek", "billing").out, `| No message waits here.`)
	var first, second struct {
		Next     string
		Messages []map[string]any
	}
	w.decode(&first, "queue", "peek", "orders", "--json", "--limit", "1")
	w.decode(&second, "queue", "peek", "orders", "--json", "--body", "--after", first.Next)
	if len(first.Messages) != 1 || first.Messages[0]["body"] != nil || len(second.Messages) != 1 ||
		second.Messages[0]["body_base64"] != "/wA=" || second.Messages[0]["ready"] != false {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	w.exec(`SELECT edda.send('order.place', '', '{"edda-expire": "36h"}', 'billing',
		id => '00000000-0000-0000-0000-000000000007')`)
	w.exec(`UPDATE edda.queue_1 SET attempt = 2, last_error = 'the card service said 503'`)
	says(t, w.want(exitDone, "queue", "peek", "billing").out, "the card service said 503")
	says(t, w.want(exitDone, "queue", "show", "00000000-0000-0000-0000-000000000007").out,
		"endpoint", "billing", "expires", "next attempt", "3", "last error", "the card service said 503")
	var shown struct{ Messages []foundJSON }
	w.decode(&shown, "queue", "show", "00000000-0000-0000-0000-000000000007", "--json")
	if len(shown.Messages) != 1 || shown.Messages[0].Endpoint != "billing" || shown.Messages[0].Attempt != 3 ||
		shown.Messages[0].LastError != "the card service said 503" {
		t.Errorf("%+v", shown)
	} else if sent, end := shown.Messages[0].Sent, shown.Messages[0].Expires; sent == nil || end == nil ||
		end.Sub(*sent) != 36*time.Hour {
		t.Errorf("sent %v, expires %v, want 36 hours between them", sent, end)
	}
	says(t, w.want(exitNotFound, "queue", "show", "00000000-0000-0000-0000-000000000008").err, "no such message")
	says(t, w.want(exitUsage, "queue", "show", "seven").err, "want a UUID")
	cancel := []string{"queue", "cancel", "billing", "00000000-0000-0000-0000-000000000007", "--reason",
		"ordered twice"}
	says(t, w.want(exitDone, cancel...).out, "was deleted from the queue")
	says(t, w.want(exitNotFound, cancel...).err, "no such message")
	says(t, w.want(exitUsage, "queue", "cancel", "billing", "seven").err, "want a UUID")
	if got := w.want(exitDone, "queue", "peek", "orders", "--json").out; strings.ContainsRune(got, 0x1b) ||
		!strings.Contains(got, `acme\u001b[2J`) {
		t.Error(got)
	}
}

func (w *world) decode(into any, args ...string) {
	w.t.Helper()
	s := w.want(exitDone, args...)
	if err := json.Unmarshal([]byte(s.out), into); err != nil {
		w.t.Fatalf("edda %v: %v\n%s", args, err, s.out)
	}
}

func TestSagas(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "saga", "list").out, `| No such instance lives.`)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state, timeouts, originator, started) VALUES
		(gen_random_uuid(), 'order', '7', 3, 1, '{"Paid":false,"Note":"\u001b[2J"}',
		 '[{"name":"payment","kind":"order.overdue","due":"2026-02-03T00:00:00Z",
		    "id":"00000000-0000-0000-0000-000000000007"},
		   {"kind":"order.check","due":"2026-02-01T00:00:00Z","id":"00000000-0000-0000-0000-000000000008"}]',
		 '{"endpoint":"web","message":"00000000-0000-0000-0000-000000000009"}', now()),
		(gen_random_uuid(), 'order', E'8 \u202e\r\n', 1, 1, '{}', NULL, NULL, now()),
		(gen_random_uuid(), 'parcel', '7', 1, 1, '{}', NULL, '[1]', now())`)
	w.prints(w.want(exitDone, "saga", "list").out, `
		| SAGA KEY VERSION STARTED CHANGED TIMEOUTS NEXT REMEMBERED UNTIL
		| order 7 3 TIME TIME 2 TIME -
		| order 8 \u202e\r\n 1 TIME TIME 0 - -
		| parcel 7 1 TIME TIME 0 - -`)
	w.prints(w.want(exitDone, "saga", "list", "order", "--prefix", "7", "--limit", "1").out, `
		| SAGA KEY VERSION STARTED CHANGED TIMEOUTS NEXT REMEMBERED UNTIL
		| order 7 3 TIME TIME 2 TIME -
		| There may be more: --after order/7`)
	w.prints(w.want(exitDone, "saga", "list", "--after", "order/7", "--limit", "1").out, `
		| SAGA KEY VERSION STARTED CHANGED TIMEOUTS NEXT REMEMBERED UNTIL
		| order 8 \u202e\r\n 1 TIME TIME 0 - -
		| There may be more: --after 'order/8 \u202e\r\n'`)
	w.prints(w.want(exitDone, "saga", "show", "order", "7").out, `
		| saga order
		| key 7
		| id ID
		| version 3
		| state version 1
		| started TIME
		| changed TIME
		| started by endpoint web
		| started by message ID
		| timeouts:
		|  TIME order.overdue payment
		|  TIME order.check
		| state:
		|  {
		|  "Paid": false,
		|  "Note": "\u001b[2J"
		|  }
		| history:
		| The history has no entry of it.`)
	var shown instanceJSON
	w.decode(&shown, "saga", "show", "order", "7", "--json")
	if shown.Version != 3 || len(shown.Timeouts) != 2 || shown.Timeouts[0].Name != "payment" ||
		shown.Originator.Endpoint != "web" {
		t.Errorf("%+v", shown)
	}
	var state map[string]any
	if err := json.Unmarshal(shown.State, &state); err != nil ||
		cmp.Diff(state, map[string]any{"Paid": false, "Note": "\x1b[2J"}) != "" {
		t.Errorf("state %s %v", shown.State, err)
	}
	says(t, w.want(exitDone, "saga", "show", "parcel", "7").out, "cannot be read: column originator")
	says(t, w.want(exitNotFound, "saga", "show", "order", "9").err, "show saga order/9: no instance of this "+
		"key is alive")
}

// A completed instance that is remembered is shown as such.
func TestRememberedSaga(t *testing.T) {
	w := migrated(t)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state, timeouts, started) VALUES
		(gen_random_uuid(), 'order', '7', 3, 1, '{}', ('[{"kind":"edd' || 'a.forget","due":"2026-02-03T00:00:00Z",
		    "id":"00000000-0000-0000-0000-000000000007"}]')::json, now())`)
	w.prints(w.want(exitDone, "saga", "list").out, `
		| SAGA KEY VERSION STARTED CHANGED TIMEOUTS NEXT REMEMBERED UNTIL
		| order 7 3 TIME TIME 1 TIME TIME`)
	says(t, w.want(exitDone, "saga", "show", "order", "7").out,
		"It has completed, and its key is reserved until 2026-02-03 00:00:00.000Z.")
	var shown instanceJSON
	w.decode(&shown, "saga", "show", "order", "7", "--json")
	if until := shown.RememberedUntil; until == nil || until.Day() != 3 {
		t.Errorf("%+v", shown)
	}
}

// bury writes dead letters, the first with the number 1.
func (w *world) bury(count int) {
	w.t.Helper()
	for range count {
		w.exec(`INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason,
			error, first_failed)
			VALUES ('orders', gen_random_uuid(), 'order.place', '{"edda-from":"web"}', '{"ID":"7"}', 24, 0, 'policy',
			E'card refused\x1b[31m\nby the bank', now())`)
	}
}

func TestDeadLetters(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "dead", "list").out, `| No such dead letter.`)
	w.want(exitDone, "migrate", "install", "orders")
	w.bury(6)
	w.prints(w.want(exitDone, "dead", "list", "--limit", "2", "--after", "1").out, `
		| NUMBER DIED ENDPOINT KIND ATTEMPTS REASON ERROR
		| 2 TIME orders order.place 24 policy card refused\x1b[31m…
		| 3 TIME orders order.place 24 policy card refused\x1b[31m…
		| There may be more: --after 3`)
	w.prints(w.want(exitDone, "dead", "list", "--endpoint", "billing").out, `| No such dead letter.`)
	w.prints(w.want(exitDone, "dead", "show", "1", "--body").out, `
		| number 1
		| endpoint orders
		| kind order.place
		| message ID
		| sent -
		| first failed TIME
		| died TIME
		| attempts 24
		| conflicts 0
		| reason policy
		| group old
		| body 10 bytes
		| error:
		|  card refused\x1b[31m
		|  by the bank
		| headers:
		|  edda-from: web
		| body:
		|  {
		|  "ID": "7"
		|  }`)
	var shown map[string]any
	w.decode(&shown, "dead", "show", "1", "--json", "--body")
	if shown["body"] != `{"ID":"7"}` || shown["error"] != "card refused\x1b[31m\nby the bank" ||
		shown["size"] != 10.0 ||
		cmp.Diff(shown["headers"], map[string]any{"edda-from": "web"}) != "" {
		t.Errorf("%+v", shown)
	}
	var found struct {
		Dead []letterJSON `json:"dead_letters"`
	}
	w.decode(&found, "dead", "list", "--json", "--message", shown["message"].(string))
	if len(found.Dead) != 1 || found.Dead[0].Number != 1 {
		t.Errorf("by its message: %+v", found)
	}

	w.prints(w.want(exitDone, "dead", "retry", "1", "2", "1").out, `
		| Dead letter 1 is retried.
		| Dead letter 2 is retried.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_1`); n != 2 {
		t.Errorf("%d messages in the queue, want 2", n)
	}
	w.prints(w.want(exitDone, "dead", "discard", "3", "--reason", "a test").out, `| Dead letter 3 is discarded.`)
	if n := w.count(`SELECT count(*) FROM edda.discarded WHERE reason = 'a test'`); n != 1 {
		t.Errorf("%d discarded, want 1", n)
	}
	says(t, w.want(exitNotFound, "dead", "show", "1").err, "show dead letter 1: no such dead letter")
	s := w.want(exitNotFound, "dead", "retry", "1", "4", "3")
	says(t, s.out, "Dead letter 4 is retried.")
	says(t, s.err, "2 dead letters are as they were", "1: no such dead letter", "3: no such dead letter")
	says(t, w.want(exitNotFound, "dead", "discard", "9", "--reason", "x", "--json").out, `"not_found": [`,
		`"discarded": []`)

	w.exec(`UPDATE edda.dead_letter SET endpoint = 'nobody' WHERE id = 5`)
	s = w.want(exitFailed, "dead", "retry", "5", "6")
	says(t, s.out, "Dead letter 6 is retried.")
	says(t, s.err, "retry dead letter 5", `endpoint "nobody"`, "edda migrate install")
	if n := w.count(`SELECT count(*) FROM edda.dead_letter`); n != 1 {
		t.Errorf("%d dead letters are left, want the one that failed", n)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	says(t, runWith(t.Context(), "version").out, "edda ", fmt.Sprintf("schema version %d, go1.", migrations.Version))
	says(t, runWith(t.Context(), "version", "--json").out, fmt.Sprintf(`"schema_version": %d`, migrations.Version))
}

// The environment is used where no flag is set.
func TestEnvironment(t *testing.T) {
	schema := pgdev.Schema(t)
	t.Setenv("DATABASE_URL", pgdev.DSN(t))
	t.Setenv("EDDA_SCHEMA", schema)
	if s := runWith(t.Context(), "migrate", "up"); s.code != exitDone || !strings.Contains(s.out, schema) {
		t.Errorf("%+v", s)
	}
}
