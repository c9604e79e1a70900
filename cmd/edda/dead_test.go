package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
)

// morgue has n dead letters of orders in the group of stock and as many of billing in the group of cards.
func morgue(t *testing.T, n int) *world {
	t.Helper()
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "orders", "billing")
	for _, l := range []recoverability.Letter{
		{Endpoint: "orders", Kind: "order.place", Reason: "given up by the policy", Error: "no stock of 7"},
		{Endpoint: "billing", Kind: "card.charge", Reason: "permanent", Error: "card refused"},
	} {
		w.exec(`INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason,
			error, error_group)
			SELECT $1, gen_random_uuid(), $2, '{"tenant":"acme","edda-from":"web"}', convert_to('{"N":' || n || '}',
			'UTF8'), 24, 0, $3, $4, $5
			FROM generate_series(1, $6::int) n`, l.Endpoint, l.Kind, l.Reason, l.Error, deadletter.GroupOf(&l), n)
	}
	return w
}

func TestDeadGroups(t *testing.T) {
	w := morgue(t, 3)
	w.exec(`DELETE FROM edda.dead_letter WHERE id = 1`)
	w.prints(w.want(exitDone, "dead", "group").out, `
		| GROUP COUNT ENDPOINT KIND FIRST LAST EXAMPLE REASON ERROR NOTE
		| 9a8aabe2cfc9 3 billing card.charge TIME TIME 6 permanent card refused -
		| 3409b8cb9c59 2 orders order.place TIME TIME 3 given up by the policy no stock of 7 -`)
	var found struct {
		Groups []groupJSON
		Next   string
	}
	w.decode(&found, "dead", "group", "--kind", "order.place", "--json")
	if len(found.Groups) != 1 || found.Groups[0].Count != 2 || found.Next != "" {
		t.Errorf("%+v", found)
	}
	group := found.Groups[0].Group
	says(t, w.want(exitDone, "dead", "list", "--group", group, "--since", "1h").out, "order.place")
	w.prints(w.want(exitDone, "dead", "list", "--group", group, "--until", "1h").out, `| No such dead letter.`)
	w.prints(w.want(exitDone, "dead", "group", "--after", "ffff").out, `| No such dead letter.`)
}

// A note is shown with its group and its author, and is gone after its removal.
func TestDeadNote(t *testing.T) {
	w := morgue(t, 1)
	w.prints(w.want(exitDone, "dead", "note", "9a8aabe2cfc9", "it's the bank; OPS-7").out,
		`| Group 9a8aabe2cfc9 has the note.`)
	says(t, w.want(exitDone, "dead", "group").out, "it's the bank; OPS-7")
	var found struct{ Groups []groupJSON }
	w.decode(&found, "dead", "group", "--endpoint", "billing", "--json")
	if n := found.Groups[0].Note; n == nil || n.Text != "it's the bank; OPS-7" || n.By != actorName() || n.At.IsZero() {
		t.Errorf("%+v", found)
	}
	w.prints(w.want(exitDone, "dead", "note", "9a8aabe2cfc9", "--remove", "--json").out, `
		| {
		|  "group": "9a8aabe2cfc9",
		|  "note": ""
		| }`)
	if w.decode(&found, "dead", "group", "--endpoint", "billing", "--json"); found.Groups[0].Note != nil {
		t.Errorf("%+v", found)
	}
	w.want(exitNotFound, "dead", "note", "000000000000", "x")
	says(t, w.want(exitFailed, "dead", "note", "9a8aabe2cfc9", strings.Repeat("x", 2001)).err, "the limit is 2000")
	for _, wrong := range [][]string{{"9a8aabe2cfc9"}, {"9a8aabe2cfc9", " "}, {"9a8aabe2cfc9", "x", "--remove"}} {
		w.want(exitUsage, append([]string{"dead", "note"}, wrong...)...)
	}
}

func TestRetryAndDiscardByFilter(t *testing.T) {
	w := morgue(t, 250)
	s := w.want(exitUsage, "dead", "retry", "--endpoint", "orders")
	says(t, s.err, "250 dead letters are selected, and nothing was changed", "--yes")
	w.prints(w.want(exitDone, "dead", "jobs").out, `| No job has retried or discarded dead letters.`)
	w.prints(w.want(exitDone, "dead", "retry", "--endpoint", "orders", "--yes").out,
		`| Job 1 is done: 250 dead letters were retried.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_1`); n != 250 {
		t.Errorf("%d messages are in the queue of orders, want 250", n)
	}
	w.exec(`UPDATE edda.dead_letter SET endpoint = 'nobody' WHERE id % 2 = 0`)
	s = w.want(exitFailed, "dead", "retry", "--all", "--yes")
	says(t, s.out, "Job 2 is done: 125 dead letters were retried.")
	says(t, s.err, "125 dead letters could not be retried and are as before", "nobody")
	says(t, w.want(exitUsage, "dead", "discard", "--all", "--yes").err, "--reason is missing")
	var done jobJSON
	w.decode(&done, "dead", "discard", "--all", "--reason", "a test", "--yes", "--json")
	if done.Job != 3 || done.Ended != 125 || done.State != "done" || done.Filter != "--all" ||
		done.Action != "discard" {
		t.Errorf("%+v", done)
	}
	w.prints(w.want(exitDone, "dead", "jobs", "--limit", "2").out, `
		| JOB ACTION STATE ENDED KEPT UNDONE RATE CREATED CHANGED FILTER
		| 3 discard done 125 0 0 - TIME TIME --all
		| 2 retry done 125 125 0 - TIME TIME --all`)
	if n := w.count(`SELECT count(*) FROM edda.dead_letter`) + 1000*w.count(
		`SELECT count(*) FROM edda.discarded WHERE reason = 'a test'`); n != 125_000 {
		t.Errorf("dead letters and 1,000 times the discarded: %d", n)
	}
}

// An interrupted job prints how to continue; a second command can continue it, and no letter is retried twice.
func TestInterruptedRetryGoesOn(t *testing.T) {
	w := morgue(t, 40)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan said)
	go func() { ended <- w.eddaIn(ctx, "dead", "retry", "--endpoint", "orders", "--rate", "10", "--yes") }()
	for w.count(`SELECT count(*) FROM edda.queue_1`) < 3 {
	}
	interrupt()
	s := <-ended
	if s.code != exitInterrupted {
		t.Fatalf("%+v", s)
	}
	says(t, s.err, `"edda dead retry --resume 1" continues`)
	says(t, w.want(exitFailed, "dead", "discard", "--resume", "1").err, "edda dead retry --resume 1")
	w.exec(`UPDATE edda.dead_letter_job SET rate = NULL`)
	w.prints(w.want(exitDone, "dead", "retry", "--resume", "1").out, `| Job 1 is done: 40 dead letters were retried.`)
	if n := w.count(`SELECT count(DISTINCT id) FROM edda.queue_1`); n != 40 ||
		w.count(`SELECT count(*) FROM edda.queue_1`) != 40 {
		t.Errorf("%d different messages of 40 are in the queue", n)
	}
	w.want(exitNotFound, "dead", "retry", "--resume", "9")
	w.want(exitNotFound, "dead", "jobs", "--cancel", "1")
}

// A canary whose letters fail again stops, is undone, and continues on request.
func TestCanaryAndUndo(t *testing.T) {
	w := morgue(t, 10)
	done := make(chan said)
	go func() { done <- w.eddaIn(t.Context(), "dead", "retry", "--endpoint", "orders", "--canary", "--yes") }()
	for w.count(`SELECT count(*) FROM edda.queue_1`) == 0 {
	}
	w.exec(`WITH gone AS (DELETE FROM edda.queue_1 RETURNING *)
		INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		SELECT 'orders', id, kind, header, body, 1, 0, 'permanent', 'still no stock' FROM gone`)
	s := <-done
	if s.code != exitFailed {
		t.Errorf("%+v", s)
	}
	says(t, s.out, "Job 1 is paused: 1 dead letter was retried.")
	says(t, s.err, "1 of 1 messages of stage 1 failed again: still no stock", `"edda dead undo 1"`,
		`"edda dead jobs --resume 1"`)
	go func() { done <- w.eddaIn(t.Context(), "dead", "jobs", "--resume", "1") }()
	for w.count(`SELECT count(*) FROM edda.dead_letter_job WHERE state = 'done'`) == 0 {
		w.exec(`DELETE FROM edda.queue_1 WHERE (SELECT ended FROM edda.dead_letter_job) IN (2, 7)`)
	}
	s = <-done
	says(t, s.out, "Job 1 is done: 10 dead letters were retried.")
	w.exec(`DELETE FROM edda.dead_letter`)
	w.exec(`INSERT INTO edda.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error)
		SELECT 'orders', gen_random_uuid(), 'k', '{}', '{}', 1, 0, 'permanent', 'x' FROM generate_series(1, 3)`)
	w.exec(`DELETE FROM edda.queue_1`)
	says(t, w.want(exitFailed, "dead", "retry", "--all", "--to", "nowhere", "--yes").err, "there is no endpoint",
		"nowhere")
	w.want(exitDone, "dead", "retry", "--all", "--to", "billing", "--yes")
	w.exec(`UPDATE edda.queue_2 SET attempt = 1 WHERE id = (SELECT min(id::text)::uuid FROM edda.queue_2)`)
	w.prints(w.want(exitDone, "dead", "undo", "2").out,
		`| Messages of job 2 that are dead letters again: 2. Left as they are, because a handler has tried them or `+
			`has them in hand, or they were moved or retried once more: 1.`)
	if n := w.count(`SELECT count(*) FROM edda.dead_letter WHERE endpoint = 'orders'`); n != 2 {
		t.Errorf("%d letters of orders are back, want 2", n)
	}
	number := strconv.Itoa(w.count(`SELECT min(id) FROM edda.dead_letter`))
	w.want(exitDone, "dead", "retry", number, "--to", "billing")
	if n := w.count(`SELECT count(*) FROM edda.queue_2`); n != 2 {
		t.Errorf("%d messages are in the queue of billing, want 2", n)
	}
	w.want(exitNotFound, "dead", "undo", "9")
	w.want(exitNotFound, "dead", "jobs", "--resume", "9")
}

func TestDeadCommandLinesThatAreWrong(t *testing.T) {
	w := migrated(t)
	for command, complaint := range map[string]string{
		"retry":                    "give numbers of dead letters, or a filter",
		"retry 1 --group a":        "numbers of dead letters, or a filter",
		"retry --resume 1 --all":   "leave out",
		"retry --resume -1":        "want the number of a job",
		"retry --all --kind a":     "--all selects every",
		"retry --since yesterday":  "want a time like",
		"retry 1 --canary":         "--canary needs a filter",
		"retry --resume 1 --to a":  "--to works without --resume only",
		"undo seven":               "not the number of a job",
		"list --until -1h":         "in the future",
		"list --message 7":         "--message 7",
		"edit 1 --set tenant":      "want NAME=VALUE",
		"edit one --set tenant=ab": "not the number of a dead letter",
	} {
		says(t, w.want(exitUsage, append([]string{"dead"}, strings.Fields(command)...)...).err, complaint)
	}
	says(t, w.want(exitFailed, "dead", "retry", "--all", "--rate", "-1", "--yes").err, "Rate is -1")
}

func TestEdit(t *testing.T) {
	w := morgue(t, 3)
	body := func(id string) string {
		t.Helper()
		n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE body = convert_to('` + id + `', 'UTF8')`)
		return map[int]string{1: "sent"}[n]
	}
	file := filepath.Join(t.TempDir(), "new.json")
	if err := os.WriteFile(file, []byte(`{"N":10}`), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, w.want(exitDone, "dead", "edit", "1", "--body", file, "--reason", "ten").out,
		"Dead letter 1 is edited and retried as message")
	if body(`{"N":10}`) != "sent" {
		t.Error("the new body was not sent")
	}
	says(t, w.want(exitFailed, "dead", "edit", "2", "--editor", "true").err, "nothing was changed")
	says(t, w.want(exitFailed, "dead", "edit", "2", "--editor", "false").err, "edit the body with false")
	says(t, w.want(exitFailed, "dead", "edit", "2", "--editor", "echo {> ").err, "the body is not JSON")
	w.want(exitDone, "dead", "edit", "2", "--editor", "sed -i s/2/20/")
	if body(`{"N":20}`) != "sent" {
		t.Error("what the editor left was not sent, packed")
	}
	var edited map[string]any
	w.decode(&edited, "dead", "edit", "3", "--set", "tenant=b=c", "--remove", "none", "--new-id", "--json")
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE id = '` + edited["message"].(string) +
		`' AND convert_from(header, 'UTF8')::json ->> 'tenant' = 'b=c'
		AND convert_from(header, 'UTF8')::json ->> 'edda-from' = 'web'`); n != 1 {
		t.Errorf("%v", edited)
	}
	if n := w.count(`SELECT count(*) FROM edda.dead_letter_edit WHERE body IN ('{"N":1}', '{"N":2}',
		'{"N":3}')`); n != 3 {
		t.Errorf("%d old bodies are kept, want 3", n)
	}
	w.want(exitNotFound, "dead", "edit", "1", "--body", file)
	var out, complaint bytes.Buffer
	code := run(t.Context(), []string{"dead", "edit", "4", "--body", "-", "--raw", "--database", pgdev.DSN(t),
		"--schema", w.schema},
		streams{in: strings.NewReader("\xff"), out: &out, err: &complaint})
	if code != exitDone || w.count(`SELECT count(*) FROM edda.queue_2 WHERE body = '\xff'`) != 1 {
		t.Errorf("exit code %d: %s%s", code, out.String(), complaint.String())
	}
}

// One change is shown on a few letters, and then applied to all; numbers keep their notation.
func TestEditMany(t *testing.T) {
	w := morgue(t, 5)
	w.exec(`UPDATE edda.dead_letter SET body = '{"N":12345678901234567890,"old":1,"in":{"a":1,"b":2}}'
		WHERE endpoint = 'orders'`)
	w.exec(`UPDATE edda.dead_letter SET body = 'no JSON' WHERE id = 3`)
	edit := []string{"dead", "edit", "--endpoint", "orders", "--patch",
		w.file(`{"old":null,"new":"x","in":{"a":7}}`)}
	s := w.want(exitUsage, append(edit, "--preview", "3")...)
	w.prints(s.out, `
		| dead letter 1: in.a: 1 → 7, +new: "x", -old
		| dead letter 2: in.a: 1 → 7, +new: "x", -old
		| dead letter 3: its body cannot be changed: it is not JSON`)
	says(t, s.err, "5 dead letters are selected, and nothing was changed")
	says(t, w.want(exitFailed, append(edit, "--yes", "--reason", "renamed")...).err,
		"1 dead letter could not be retried and is as before",
		"it is not JSON")
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE convert_from(body, 'UTF8')::jsonb =
		'{"N":12345678901234567890,"new":"x","in":{"a":7,"b":2}}'`); n != 4 {
		t.Errorf("%d bodies are changed, want 4", n)
	}
	if n := w.count(`SELECT count(*) FROM edda.dead_letter_edit WHERE reason = 'renamed'`); n != 4 {
		t.Errorf("%d old letters are kept, want 4", n)
	}
	says(t, w.want(exitFailed, "dead", "undo", "1").err, "it has changed its letters")
	says(t, w.want(exitFailed, "dead", "edit", "--all", "--patch", w.file(`[1]`), "--preview", "0", "--yes").err,
		"Patch is not a JSON object")
	for command, complaint := range map[string]string{
		"edit":                           "give the number of a dead letter, or a filter and --patch",
		"edit 1 --all":                   "give the number of a dead letter, or a filter and --patch",
		"edit 1 --patch -":               "leave out the number",
		"edit --all --patch - --set a=b": "leave out the flags of the other changes",
	} {
		says(t, w.want(exitUsage, append([]string{"dead"}, strings.Fields(command)...)...).err, complaint)
	}
}
