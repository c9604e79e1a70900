package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/demo"
	"github.com/edda-go/edda/internal/pg/pgtest"
	"github.com/edda-go/edda/internal/pgdev"
)

// programVariable lets the test binary be the program. Its servers are known by serverVariable.
const programVariable = "EDDA_SCHEDULED_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(start(os.Args[1:], os.Stdout, os.Stderr))
	}
	pgtest.Main(m)
}

// The whole program, with a shorter night and the kill.
func TestProgram(t *testing.T) {
	t.Parallel()
	c := exec.Command(os.Args[0], "-for", "6s", "-night", "2s")
	c.Env = append(os.Environ(), programVariable+"=yes", "DATABASE_URL="+pgdev.DSN(t))
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("the program ended with %v:\n%s", err, said)
	}
	for _, want := range []string{"is killed while", "its cap is 2.", "rates is held: it has 1 of ", "edda run retry",
		"Each due time was run once and done once."} {
		if !strings.Contains(string(said), want) {
			t.Errorf("the program did not print %q:\n%s", want, said)
		}
	}
}

// The check must see what it says it sees: of three due times one was done twice, one not at all, and two runs were
// active beside each other in a group of one.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := demo.Connect(ctx, pgdev.DSN(t), pgdev.Schema(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Pool.Close()
	if err := db.Create(ctx, tables); err != nil {
		t.Fatal(err)
	}
	d := &database{Database: db}
	if d.sql, err = load(d.Own); err != nil {
		t.Fatal(err)
	}
	due := time.Date(2026, 11, 20, 2, 30, 0, 0, time.UTC)
	seed := `WITH g AS (INSERT INTO %[1]s.manifest_group (name) VALUES ('settlement') RETURNING id),
		m AS (INSERT INTO %[1]s.manifest (name, definition, kind, body) VALUES ('poll', '{}', 'poll', '{}')
		RETURNING id),
		r AS (INSERT INTO %[1]s.run (id, manifest_id, group_id, origin, state, due, ready, attempt)
			SELECT gen_random_uuid(), m.id, g.id, 'manual', 'succeeded', '%[2]s', now(), 2 FROM g, m,
			generate_series(1, 2) RETURNING id),
		e AS (INSERT INTO effect VALUES ('poll', '%[2]s'), ('poll', '%[2]s'), ('poll', '%[3]s'))
		INSERT INTO %[1]s.run_attempt (run, attempt, message_id, sent, ended) SELECT id, 1, id, now(),
		now() + interval '1 second' FROM r`
	stamp := func(n int) string { return due.Add(time.Duration(n) * time.Hour).Format(time.RFC3339) }
	if _, err := d.Pool.Exec(ctx, fmt.Sprintf(seed, d.Edda, stamp(0), stamp(9))); err != nil {
		t.Fatal(err)
	}
	p := &show{database: d, due: map[string][]time.Time{"poll": {due, due.Add(time.Hour)}}}
	lines, err := p.lines(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := line{Name: "poll", Expected: 2, Runs: 2, Succeeded: 2, Effects: 3, Doubled: 1, Missing: 1, Stranger: 1,
		Again: 1}
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("the check says %+v, want %+v", lines, want)
	}
	if faults := want.faults(); len(faults) != 2 {
		t.Errorf("the faults are %q, want those of the effects and of the due times", faults)
	}
	if most, err := p.number(ctx, "at_once", groupName); err != nil || most != 2 {
		t.Errorf("%d runs were active at a moment (%v), want 2", most, err)
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-for", "1s"}, {"-night", "7s"}, {"-night", "1500ms"}, {"-for", "1h"}, {"now"},
		{"-what"}} {
		var out, complaints bytes.Buffer
		if code := start(args, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), "-h for help") {
			t.Errorf("%v ended with %d and %q, want 2 and where help is", args, code, complaints.String())
		}
	}
	var out bytes.Buffer
	if code := start([]string{"-h"}, &out, &out); code != 0 || !strings.Contains(out.String(), "-night") {
		t.Errorf("-h ended with %d and %q", code, out.String())
	}
}
