package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
)

// living7 is a world with order 7, alive at version 3.
func living7(t *testing.T) *world {
	t.Helper()
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders")
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state, timeouts) VALUES
		('0198c0de-0000-7000-8000-000000000007', 'order', '7', 3, 1, '{"N":1}', '[{"name":"due","kind":"order.late",
			"due":"2099-01-01T00:00:00Z","id":"0198c0de-0000-7000-8000-000000000008"},
			{"kind":"order.late","due":"2099-01-02T00:00:00Z","id":"0198c0de-0000-7000-8000-000000000009"}]')`)
	w.exec(`INSERT INTO edda.queue_1 (due, id, kind, header, body) VALUES
		('2099-01-01T00:00:00Z', '0198c0de-0000-7000-8000-000000000008', 'order.late', '{}', '{}'),
		('2099-01-02T00:00:00Z', '0198c0de-0000-7000-8000-000000000009', 'order.late', '{}', '{}')`)
	return w
}

// at runs the program with a person at the terminal, who types text.
func (w *world) at(text string, args ...string) said {
	w.t.Helper()
	var out, complaint bytes.Buffer
	code := run(w.t.Context(), append(args, "--database", pgdev.DSN(w.t), "--schema", w.schema),
		streams{in: strings.NewReader(text), out: &out, err: &complaint, terminal: true})
	return said{code, out.String(), complaint.String()}
}

func (w *world) file(text string) string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return name
}

func TestSagaRepair(t *testing.T) {
	w := living7(t)
	repair := []string{"saga", "repair", "order", "7", "--version", "3", "--state", w.file(`{"N":2}`), "--reason",
		"lost"}
	says(t, w.want(exitUsage, repair...).err, "The state changes: N: 1 → 2", "nothing was changed: add --yes")
	s := w.at("n\n", repair...)
	says(t, s.err, "Repair order 7? [y/N]", "nothing was changed")
	if n := w.count(`SELECT version FROM edda.saga`); s.code != exitFailed || n != 3 {
		t.Errorf("a person said no: exit code %d, version %d", s.code, n)
	}
	w.prints(w.at("yes\n", repair...).out, `| order 7 is repaired, and has version 4: N: 1 → 2`)
	says(t, w.want(exitFailed, append(repair, "--yes")...).err, "the instance has changed: it has version 4, not 3")
	var done struct {
		Version int
		Before  map[string]int
		After   map[string]int
	}
	w.decode(&done, "saga", "repair", "order", "7", "--version", "4", "--state", w.file(`{"N":5}`), "--yes", "--json",
		"--reason", "again")
	if done.Version != 5 || done.Before["N"] != 2 || done.After["N"] != 5 {
		t.Errorf("%+v", done)
	}
	w.prints(w.want(exitDone, "history", "show", "order", "7").out, `
		| order 7, which lives since TIME
		| instance ID
		| VERSION TIME IN STATE OUT
		| 4 TIME by ACTOR repaired
		| 5 TIME by ACTOR repaired`)
	says(t, w.want(exitDone, "audit", "--verb", "saga").out, "order/7", "version 3 → 4", "lost")
	says(t, w.want(exitUsage, "saga", "repair", "order", "7", "--version", "4", "--state", "x").err,
		"--reason is missing")
	says(t, w.want(exitUsage, "saga", "repair", "order", "7", "--reason", "x").err,
		"--version and --state are required")
	w.want(exitNotFound, "saga", "repair", "order", "8", "--version", "4", "--state", w.file(`{}`), "--reason", "x",
		"--yes")
	says(t, w.at("", "saga", "repair", "order", "7", "--version", "5", "--state", "-", "--reason", "x").err,
		"nothing was changed")
}

func TestSagaEnd(t *testing.T) {
	w := living7(t)
	end := []string{"saga", "end", "order", "7", "--reason", "a test"}
	says(t, w.want(exitUsage, end...).err, `It has version 3, and 2 timeouts wait. State: {`, "add --yes")
	says(t, w.want(exitFailed, append(end, "--yes", "--version", "2")...).err, "it has version 3, not 2")
	s := w.at("y\n", end...)
	says(t, s.err, "End order 7? This cannot be undone.")
	w.prints(s.out, `| order 7 has ended at version 3, and 2 timeouts are cancelled.`)
	if n := w.count(`SELECT count(*) FROM edda.saga`) + w.count(`SELECT count(*) FROM edda.queue_1`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	says(t, w.want(exitDone, "history", "ended", "order", "--outcome", "stopped").out, "stopped")
	w.want(exitNotFound, append(end, "--yes")...)
}

func TestSagaTimeout(t *testing.T) {
	w := living7(t)
	w.prints(w.want(exitDone, "saga", "timeout", "order", "7", "due", "--at", "2098-01-01T00:00:00Z").out,
		`| Timeout due of order 7 is due at TIME.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE due = '2098-01-01T00:00:00Z'`); n != 1 {
		t.Error("it was not moved")
	}
	w.want(exitDone, "saga", "timeout", "order", "7", "due", "--at", "2h")
	w.prints(w.want(exitDone, "saga", "timeout", "order", "7", "due", "--fire").out,
		`| Timeout due of order 7 is fired.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE due <= now()`); n != 1 {
		t.Error("it was not fired")
	}
	var done struct {
		Did     string
		Timeout timeoutJSON
	}
	w.decode(&done, "saga", "timeout", "order", "7", "0198c0de-0000-7000-8000-000000000009", "--cancel", "--json")
	if done.Did != "cancelled" || done.Timeout.Kind != "order.late" ||
		w.count(`SELECT count(*) FROM edda.queue_1`) != 1 {
		t.Errorf("%+v", done)
	}
	w.want(exitNotFound, "saga", "timeout", "order", "7", "none", "--fire")
	w.want(exitNotFound, "saga", "timeout", "order", "8", "due", "--fire")
	w.exec(`UPDATE edda.queue_1 SET due = due + interval '1 minute', attempt = 1`)
	says(t, w.want(exitFailed, "saga", "timeout", "order", "7", "due", "--fire").err, "is being handled")
	w.want(exitUsage, "saga", "timeout", "order", "7", "due")
	w.want(exitUsage, "saga", "timeout", "order", "7", "due", "--at", "tomorrow")
}

// many7 is a world with the living order 7, and n living orders of a load test.
func many7(t *testing.T, n int) *world {
	t.Helper()
	w := living7(t)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		SELECT gen_random_uuid(), 'order', 'load-' || lpad(n::text, 4, '0'), 1, 1, '{"N":1}' FROM
		generate_series(1, $1::int) n`, n)
	return w
}

// The selected instances are shown before they end, and no others end.
func TestSagaEndMany(t *testing.T) {
	w := many7(t, 12)
	end := []string{"saga", "end", "order", "--prefix", "load-", "--reason", "the load test"}
	says(t, w.want(exitUsage, end...).err, "12 instances are selected:", "order load-0010, version 1", "and 2 more",
		"nothing was changed: add --yes")
	s := w.at("n\n", end...)
	says(t, s.err, "End them? This cannot be undone. [y/N]")
	if n := w.count(`SELECT count(*) FROM edda.saga`); n != 13 || s.code != exitFailed {
		t.Errorf("a person said no: exit code %d, %d instances live", s.code, n)
	}
	w.prints(w.want(exitDone, append(end, "--yes")...).out, `| 12 instances were ended.`)
	w.prints(w.want(exitDone, append(end, "--json")...).out, `
		| {
		|  "done": 0,
		|  "gone": 0,
		|  "kept": 0,
		|  "error": "",
		|  "last": ""
		| }`)
	if n := w.count(`SELECT count(*) FROM edda.saga WHERE key = '7'`); n != 1 {
		t.Error("order 7 has ended, too")
	}
	if n := w.count(`SELECT count(*) FROM edda.audit WHERE verb = 'saga.end' AND reason = 'the load test'`); n != 12 {
		t.Errorf("%d entries of the audit, want 12", n)
	}
	for _, wrong := range [][]string{{"order"}, {"order", "7", "--all"}, {"order", "--all", "--prefix", "x"},
		{"order", "--all", "--version", "3"}, {"order", "--all", "--started-before", "noon"}} {
		w.want(exitUsage, append([]string{"saga", "end", "--reason", "x"}, wrong...)...)
	}
}

// An interrupted command prints how to continue. After that each instance has received the message once.
func TestInterruptedSagaSendGoesOn(t *testing.T) {
	w := many7(t, 400)
	w.want(exitDone, "migrate", "install", "orders", "--kinds", "order.nudge")
	body := w.file(`{}`)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan said)
	go func() {
		ended <- w.eddaIn(ctx, "saga", "send", "order", "order.nudge", "--body", body, "--prefix", "load-", "--delay",
			"1h", "--to", "orders", "--header", "tenant=acme", "--header", "x=y", "--raw", "--reason", "slept", "--yes")
	}()
	for w.count(`SELECT count(*) FROM edda.queue_1 WHERE kind = 'order.nudge'`) < 3 {
	}
	interrupt()
	s := <-ended
	if s.code != exitInterrupted {
		t.Fatalf("%+v", s)
	}
	_, command, _ := strings.Cut(s.err, "To continue, run: edda ")
	command, _, _ = strings.Cut(command, "\n")
	says(t, command, "saga send order order.nudge --body "+body+" --raw --to orders --header tenant=acme --header x=y "+
		"--delay 1h0m0s --job ", " --reason slept --database URL --schema "+w.schema+
		" --prefix load- --started-before ", " --after load-")
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state)
		VALUES (gen_random_uuid(), 'order', 'load-9999', 1, 1, '{}')`)
	again := append(strings.Fields(command), "--yes") // the world sets the database
	if s := w.edda(again...); s.code != exitDone {
		t.Fatalf("%+v", s)
	}
	again[slices.Index(again, "--after")+1] = "load-0000" // from the beginning
	s = w.edda(again...)
	w.prints(s.out, `| 400 instances were sent to.`)
	says(t, s.err, "This is job "+again[slices.Index(again, "--job")+1])
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE kind = 'order.nudge'`); n != 400 {
		t.Errorf("%d messages for 400 instances", n)
	}
	if n := w.count(`SELECT count(DISTINCT header) FROM edda.queue_1 WHERE kind = 'order.nudge'
		AND due > now() + interval '50 minutes'
		AND convert_from(header, 'UTF8')::json ->> 'tenant' = 'acme'`); n != 400 {
		t.Errorf("they are for %d instances", n)
	}
	w.want(exitUsage, "saga", "send", "order", "order.nudge", "--body", body, "--all", "--job", "7")
	says(t, w.want(exitFailed, "saga", "send", "order", "order.none", "--body", body, "--all", "--yes").err,
		"no endpoint", "0 instances were sent to")
}

func TestSagaExport(t *testing.T) {
	w := many7(t, 2)
	closed := w.edda("saga", "export", "order")
	says(t, closed.err, "3 states are left out", "--unmasked")
	if strings.Contains(closed.out, "state\":") {
		t.Errorf("it prints states of which it cannot know what is secret: %s", closed.out)
	}
	out := w.want(exitDone, "saga", "export", "order", "--reason", "a drill", "--unmasked").out
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var found struct {
		Key      string
		State    map[string]int
		Timeouts []any
	}
	if err := json.Unmarshal([]byte(lines[0]), &found); err != nil || len(lines) != 3 || found.Key != "7" ||
		found.State["N"] != 1 || len(found.Timeouts) != 2 {
		t.Errorf("%s: %+v, %v", lines, found, err)
	}
	if n := w.count(`SELECT count(*) FROM edda.audit WHERE verb = 'saga.export' AND reason = 'a drill'`); n != 1 {
		t.Errorf("%d entries of the audit, want 1", n)
	}
	if out := w.want(exitDone, "saga", "export", "order", "--prefix", "x").out; out != "" {
		t.Errorf("it prints %s", out)
	}
}

// Instances with an overdue timeout come first, then those with the oldest last message.
func TestSagaQuiet(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "saga", "list", "--quiet").out,
		`| The 10000 oldest instances have completed: no instance may be stuck.`)
	w.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state, timeouts, started, changed) VALUES
		('0198c0de-0000-7000-8000-000000000001', 'order', 'calm', 1, 1, '{}', NULL, now(), now()),
		('0198c0de-0000-7000-8000-000000000002', 'mail', 'late', 2, 1, '{}', json_build_array(json_build_object('kind',
			'x', 'due', now() - interval '1 h', 'id', gen_random_uuid())), now(), now()),
		('0198c0de-0000-7000-8000-000000000003', 'order', 'old', 3, 1, '{}', NULL, now(), now() - interval '1 day')`)
	w.prints(w.want(exitDone, "saga", "list", "--quiet").out, `
		| SAGA KEY VERSION STARTED CHANGED TIMEOUTS NEXT OVERDUE SINCE
		| mail late 2 TIME TIME 1 TIME TIME
		| order old 3 TIME TIME 0 - -
		| order calm 1 TIME TIME 0 - -`)
	var found struct {
		Instances []struct {
			Key     string
			Overdue *time.Time
		}
	}
	w.decode(&found, "saga", "list", "--quiet", "--limit", "2", "--json")
	if i := found.Instances; len(i) != 2 || i[0].Overdue == nil || i[1].Overdue != nil || i[1].Key != "old" {
		t.Errorf("%+v", i)
	}
	for _, wrong := range [][]string{{"order"}, {"--after", "order/7"}} {
		w.want(exitUsage, append([]string{"saga", "list", "--quiet"}, wrong...)...)
	}
}
