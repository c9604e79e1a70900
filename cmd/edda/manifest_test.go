package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
)

// scheduled is a schema with a nightly settlement in a group, a report that follows it, and a message on demand.
func scheduled(t *testing.T) (*world, *scheduler.Store) {
	t.Helper()
	w := migrated(t)
	s, err := scheduler.NewStore(w.pool, scheduler.StoreOptions{Schema: w.schema})
	if err != nil {
		t.Fatal(err)
	}
	d := nights()
	if _, err := s.Sync(t.Context(), d.Owner, d.Groups, d.Manifests); err != nil {
		t.Fatal(err)
	}
	w.exec("UPDATE edda.manifest SET due = '2034-03-25 01:00+00' WHERE name = 'night/settle'")
	return w, s
}

func nights() scheduler.Declaration {
	message := func(kind string) saga.Message { return saga.Raw{Name: kind, Body: []byte(`{"day":"today"}`)} }
	return scheduler.Declaration{
		Owner: "shop", Groups: []scheduler.Group{{Name: "settlement", Max: 2, Strict: true}},
		Manifests: []scheduler.Manifest{
			{Name: "night/settle", When: scheduler.Cron("0 2 * * *", "Europe/Oslo"), Message: message("account.settle"),
				Group: "settlement"},
			{Name: "night/report", When: scheduler.After("night/settle"), Message: message("report.make")},
			{Name: "tidy", When: scheduler.OnDemand(), Message: message("store.tidy")},
		},
	}
}

func TestManifestCommands(t *testing.T) {
	w, _ := scheduled(t)
	w.prints(w.want(exitDone, "manifest", "list").out, `
		| MANIFEST STATE DUE SCHEDULE GROUP OWNER SUCCESSES LAST SUCCESS
		| night/report live - after night/settle - shop 0 -
		| night/settle live TIME cron 0 2 * * * Europe/Oslo settlement shop 0 -
		| tidy live - on demand - shop 0 -`)
	w.prints(w.want(exitDone, "manifest", "next", "night/settle", "3").out, `
		| Sat 2034-03-25 02:00:00 +01:00 CET
		| Sun 2034-03-26 03:00:00 +02:00 CEST
		| Mon 2034-03-27 02:00:00 +02:00 CEST`)
	says(t, w.stable(w.want(exitDone, "manifest", "next", "tidy").out), "no clock decides")
	paused := w.stable(w.want(exitDone, "manifest", "pause", "night/settle", "--reason", "the bank\x1b is down").out)
	says(t, paused, "manifest night/settle", "owner shop", "state paused", "due TIME",
		"retries 3, after 5m0s up to 1h0m0s", "timeout 20m0s",
		"It is paused since", `(the bank\x1b is down).`)
	says(t, w.stable(w.want(exitDone, "manifest", "list", "--state", "paused").out), "night/settle paused")
	says(t, w.stable(w.want(exitDone, "manifest", "resume", "night/settle").out),
		"Nothing is due until 2034-03-25 02:00:00 CET.")
	says(t, w.stable(w.want(exitDone, "manifest", "show", "night/report", "--body").out), "when night/settle succeeds",
		`"day": "today"`)
	says(t, w.stable(w.want(exitDone, "manifest", "remove", "tidy").out), "state orphan", "It is an orphan since")
	for _, args := range [][]string{{"show"}, {"next"}, {"trigger"}, {"resume"}, {"remove"}, {"pause", "--reason", "r"},
		{"backfill", "--from", "2h", "--until", "1h"}} {
		says(t, w.want(exitNotFound, append([]string{"manifest"}, append(args, "night/setle")...)...).err,
			"there is no such manifest", "edda manifest list")
	}
	says(t, w.want(exitNotFound, "manifest", "trigger", "tidy").err, "orphan")
	w.exec(`INSERT INTO edda.manifest_program (id, release, host, pid, expires)
		SELECT gen_random_uuid(), number, 'pod', 7, now() + interval '1 hour' FROM edda.manifest_release;
		INSERT INTO edda.manifest_release (owner, digest, manifests, sums, groups)
		VALUES ('shop', '', '{night/settle,added}', '{other,x}', '{}')`)
	w.prints(w.want(exitDone, "manifest", "releases").out, `
		| RELEASE OWNER DECIDES PROGRAMS MANIFESTS DECLARED OTHERWISE DECLARED HERE ALONE SINCE SEEN
		| 2 shop - 0 2 night/settle added TIME TIME
		| 1 shop yes 1 pod:7 3 - - TIME TIME`)
	var shown manifestJSON
	w.decode(&shown, "manifest", "show", "night/settle", "--json")
	if shown.Manifest != "night/settle" || shown.State != "live" || shown.Due == nil || shown.RunTimeout == nil ||
		*shown.RunTimeout != 1200 || len(shown.Waits) != 1 || shown.Text != nil {
		t.Errorf("%+v", shown)
	}
	var listed struct {
		Manifests []manifestJSON
		Next      string
	}
	w.decode(&listed, "manifest", "list", "--json", "--limit", "2")
	if len(listed.Manifests) != 2 || listed.Next != "night/settle" {
		t.Errorf("%+v", listed)
	}
}

func TestRunCommands(t *testing.T) {
	w, s := scheduled(t)
	var triggered struct{ Run saga.ID }
	w.decode(&triggered, "manifest", "trigger", "tidy", "--body", `{"deep":true}`, "--json")
	run := triggered.Run.String()
	w.prints(w.want(exitDone, "manifest", "trigger", "tidy", "--delay", "1h").out, `| Run ID is queued.`)
	w.prints(w.want(exitDone, "run", "list").out, `
		| RUN MANIFEST STATE ORIGIN DUE ATTEMPT QUEUED ENDED ERROR
		| ID tidy waiting manual TIME 0 TIME - -
		| ID tidy queued manual TIME 0 TIME - -`)
	says(t, w.stable(w.want(exitDone, "run", "show", run, "--body").out), "store.tidy", `"deep": true`)
	w.prints(w.want(exitDone, "run", "cancel", run, "--note", "not today").out, `| Run ID is cancelled.`)
	w.prints(w.want(exitDone, "run", "retry", run, "--note", "but now").out, `| Run ID is retried.`)
	w.exec("UPDATE edda.run SET state = 'succeeded', ended = now() WHERE id = '" + run + "'")
	const none = "00000000-0000-7000-8000-000000000001"
	says(t, w.want(exitNotFound, "run", "show", none).err, "there is no such run", "edda run list")
	says(t, w.want(exitFailed, "run", "cancel", none, run, "--note", "n").err, "2 runs are as they were", "has ended",
		"no such run")
	says(t, w.want(exitNotFound, "run", "retry", none, "--note", "n").err, "no such run")
	says(t, w.want(exitFailed, "run", "retry", run, "--note", "n").err, "trigger its manifest instead")
	var shown runJSON
	w.decode(&shown, "run", "show", run, "--json")
	if shown.State != "succeeded" || shown.Note != "but now" || shown.Text != nil || shown.Ended == nil {
		t.Errorf("%+v", shown)
	}
	says(t, w.stable(w.want(exitDone, "run", "list", "--manifest", "night/settle").out), "No such run")
	says(t, w.stable(w.want(exitDone, "run", "list", "--limit", "1").out), "There may be more: --after ")

	w.exec("UPDATE edda.manifest SET created = now()")
	from := time.Now().UTC().AddDate(0, 0, -10).Format(time.RFC3339)
	w.prints(w.want(exitDone, "manifest", "backfill", "night/settle", "--from", from, "--until", "0s", "--max",
		"7").out, `
		| 7 runs are queued; 0 due times had one.
		| There are more: --from TIME`)
	w.prints(w.want(exitDone, "manifest", "backfill", "night/settle", "--from", from, "--until", "0s").out,
		`| 3 runs are queued; 7 due times had one.`)
	w.prints(w.want(exitDone, "group", "list").out, `
		| GROUP CAP ACTIVE QUEUED MANIFESTS PRIORITY OWNER PAUSED REASON
		| settlement 2 strict 0 10 1 0 shop - -`)
	says(t, w.stable(w.want(exitDone, "group", "pause", "settlement", "--reason", "r").out), "reason r")
	says(t, w.stable(w.want(exitDone, "manifest", "show", "night/settle").out), "state paused",
		"Its group settlement is paused")
	w.prints(w.want(exitDone, "group", "cancel", "settlement", "--note", "n").out, `| 10 runs are cancelled.`)
	says(t, w.stable(w.want(exitDone, "group", "resume", "settlement").out), "paused -")
	w.want(exitDone, "group", "set", "settlement", "--priority", "3")
	says(t, w.stable(w.want(exitDone, "group", "list").out), "2 strict 0 0 1 3 shop")
	says(t, w.want(exitFailed, "group", "set", "settlement", "--max", "0").err, "Strict needs a Max")
	says(t, w.stable(w.want(exitDone, "group", "set", "more").out), "cap none")
	says(t, w.want(exitNotFound, "group", "pause", "no", "--reason", "r").err, "no such group", "edda group list")
	if groups, err := s.Groups(t.Context()); err != nil || len(groups) != 2 {
		t.Errorf("%+v, %v", groups, err)
	}
}

// next and diff change no row, and work in a read-only session.
func TestNextAndDiffWriteNothing(t *testing.T) {
	w, _ := scheduled(t)
	d := nights()
	d.Manifests[0].Priority = 5
	d.Manifests = append(d.Manifests[:2], scheduler.Manifest{Name: "new", When: scheduler.Every(time.Minute),
		Message: saga.Raw{Name: "k"}})
	text, err := scheduler.MarshalDeclaration(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "manifests.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	const all = `SELECT hashtext((SELECT string_agg(m::text || m.xmin, ',' ORDER BY id)
		FROM edda.manifest m) || (SELECT string_agg(g::text || g.xmin, ',' ORDER BY id) FROM edda.manifest_group g)
		|| (SELECT count(*) FROM edda.run))`
	before := w.count(all)
	readOnly := pgdev.DSN(t) + " default_transaction_read_only=on"
	if strings.Contains(pgdev.DSN(t), "://") {
		mark := "?"
		if strings.Contains(pgdev.DSN(t), "?") {
			mark = "&"
		}
		readOnly = pgdev.DSN(t) + mark + "default_transaction_read_only=on"
	}
	ask := func(code int, args ...string) said {
		t.Helper()
		s := runWith(t.Context(), append(args, "--database", readOnly, "--schema", w.schema)...)
		if s.code != code {
			t.Fatalf("edda %v: %d\n%s%s", args, s.code, s.out, s.err)
		}
		return s
	}
	w.prints(ask(exitFailed, "manifest", "diff", file).out, `
		| + manifest new
		| ~ manifest night/settle: Priority
		| - manifest tidy
		| 1 to create, 1 to change, 1 to orphan, 1 as they are.`)
	ask(exitDone, "manifest", "next", "night/settle", "500")
	ask(exitDone, "manifest", "show", "night/settle")
	ask(exitDone, "run", "list")
	if after := w.count(all); after != before {
		t.Error("the tables are not what they were")
	}
	same, err := scheduler.MarshalDeclaration(nights(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	code := run(t.Context(), []string{"manifest", "diff", "-", "--json", "--database", readOnly, "--schema", w.schema},
		streams{in: bytes.NewReader(same), out: &out, err: &complaint})
	if code != exitDone || !strings.Contains(out.String(), `"unchanged": 3`) {
		t.Errorf("%d\n%s%s", code, out.String(), complaint.String())
	}
	says(t, w.want(exitFailed, "manifest", "diff", file+"x").err, "no such file")
}

func TestManifestsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for wrong, reason := range map[string]string{
		"manifest pause a":                        "--reason is missing",
		"group pause a":                           "--reason is missing",
		"group cancel a":                          "--note is missing",
		"manifest trigger a --body {":             "--body is not JSON",
		"manifest next a 0":                       "0 is not a number of due times",
		"manifest next a ten":                     "ten is not a number",
		"manifest list --state x":                 "--state x: want live",
		"manifest list --limit 0":                 "--limit 0",
		"manifest backfill a --from 1h":           "--until : want a time",
		"manifest backfill a --from x --until 1h": "--from x: want a time",
		"run list --state x":                      "want one of: waiting",
		"run list --after x":                      "--after x",
		"run list --since tomorrow":               "--since tomorrow",
		"run show 7":                              "7 is not the id of a run",
		"run cancel 7 --note n":                   "7 is not the id of a run",
		"run retry 7":                             "--note is missing",
		"run cancel":                              "requires at least 1 arg",
		"run retry 00000000-0000-7000-8000-0000000 --note n": "is not the id of a run",
		"manifest lst": "did you mean list",
	} {
		s := runWith(t.Context(), strings.Fields(wrong)...)
		if s.code != exitUsage || !strings.Contains(s.err, reason) {
			t.Errorf("edda %s: code %d, %q, want it to say %q", wrong, s.code, s.err, reason)
		}
	}
}
