package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/edda-go/edda/eddatest"
	"github.com/jackc/pgx/v5"
)

// programVariable lets the test binary be the program, and its workers.
const programVariable = "EDDA_PERMITS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(start(os.Args[1:]))
	}
	os.Exit(eddatest.Main(m))
}

// generated writes a log with the columns of a real one. Some events share their time, some deadlines lie before the
// first event or after the last.
func generated(t *testing.T, cases, events int) string {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	begin := time.Date(2011, 3, 1, 9, 0, 0, 0, time.FixedZone("", 3600))
	path := filepath.Join(t.TempDir(), "generated.csv")
	file, err := os.Create(path)
	must(t, err)
	w := csv.NewWriter(file)
	must(t, w.Write([]string{"case:channel", columnCase, columnDeadline, columnActivity, "org:resource", columnTime}))
	for i := range events {
		no := i % cases
		if i >= cases {
			no = random.IntN(cases)
		}
		at := begin.Add(time.Duration(random.IntN(2000)) * time.Hour)
		deadline := begin.Add(time.Duration(no*3000/cases-300) * time.Hour)
		must(t, w.Write([]string{"Desk", "case-" + strconv.Itoa(no), show(deadline), "T" + strconv.Itoa(random.IntN(6)),
			"Resource", show(at)}))
	}
	w.Flush()
	must(t, w.Error())
	must(t, file.Close())
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// program is the compiled program with arguments, on a database.
func program(t *testing.T, dsn string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), programVariable+"=yes", "DATABASE_URL="+dsn)
	return c
}

// ran runs the program to its end.
func ran(t *testing.T, dsn string, args ...string) (stdout, story string, code int) {
	t.Helper()
	var out, says bytes.Buffer
	c := program(t, dsn, args...)
	c.Stdout, c.Stderr = &out, &says
	err := c.Run()
	story = fmt.Sprintf("permits %s\n%s%s%v", strings.Join(args, " "), says.String(), out.String(), err)
	return out.String(), story, c.ProcessState.ExitCode()
}

func TestReplayLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	log := generated(t, 60, 400)
	for _, store := range []string{"optimistic", "pessimistic"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			dsn, table := eddatest.DSN(t), filepath.Join(t.TempDir(), "cases.csv")
			args := []string{"-log", log, "-store", store, "-for", "3s", "-cases", table}
			out, story, code := ran(t, dsn, args...)
			line, _, _ := strings.Cut(out, "\n")
			const want = "cases=60 events=400 instances=60 timers=60 duplicates=0 lost=0"
			if code != 0 || line != want {
				t.Fatalf("exit code %d, want 0 and %s\n%s", code, want, story)
			}
			compareTable(t, log, table)
			again, story, code := ran(t, dsn, "-verify", "-log", log)
			if code != 0 || again != out {
				t.Errorf("-verify differs, exit code %d\n%s\nthe run said\n%s", code, story, out)
			}
			checkerSees(t, dsn, log)
		})
	}
}

// compareTable holds the table against the file, which is read here in the most simple way.
func compareTable(t *testing.T, log, table string) {
	t.Helper()
	text, err := os.ReadFile(log)
	must(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	must(t, err)
	last := map[string][]string{}
	for _, r := range rows[1:] {
		if l := last[r[1]]; l == nil || r[5] >= l[5] { // all times have one zone, so texts compare as times do
			last[r[1]] = r
		}
	}
	text, err = os.ReadFile(table)
	must(t, err)
	rows, err = csv.NewReader(bytes.NewReader(text)).ReadAll()
	must(t, err)
	if len(rows)-1 != len(last) {
		t.Errorf("the table has %d cases, the log %d", len(rows)-1, len(last))
	}
	for _, r := range rows[1:] {
		if want := last[r[0]]; want == nil || r[2] != want[5] || r[3] != want[3] {
			t.Errorf("the table has %v, and the log ends with %v", r, want)
		}
	}
}

// Each of these is done to the outcome of a good run, and undone after the checker has looked.
var sabotages = []struct{ name, sql, rule string }{
	{"an effect is gone", `DELETE FROM effect WHERE ctid = (SELECT min(ctid) FROM effect)`, "lost"},
	{"an effect is there twice", `INSERT INTO effect SELECT * FROM effect LIMIT 1`, "doubled"},
	{"an effect of no event", `INSERT INTO effect VALUES ('case-1', 9999, 'T1', now())`, "invented"},
	{"an effect of another activity", `UPDATE effect SET activity = 'other' WHERE ctid = (SELECT min(ctid)
		FROM effect)`, "invented"},
	{"an instance is gone", `DELETE FROM :schema.saga WHERE key = 'case-1'`, "instance"},
	{"an instance of no case", `UPDATE :schema.saga SET key = 'case-x' WHERE key = 'case-1'`, "instance"},
	{"another last activity", `UPDATE :schema.saga SET state = jsonb_set(state::jsonb, '{Last,Name}', '"other"')
		WHERE key = 'case-1'`, "instance"},
	{"an event was taken again", `UPDATE :schema.saga SET state = jsonb_set(state::jsonb, '{Again}', '1')
		WHERE key = 'case-1'`, "instance"},
	{"a timer did not fire", `DELETE FROM firing WHERE case_id = 'case-1'`, "timer"},
	{"a timer fired twice", `INSERT INTO firing SELECT * FROM firing LIMIT 1`, "timer"},
	{"a timer fired early", `UPDATE firing SET fired = (SELECT begun FROM run) WHERE case_id = 'case-59'`, "timer"},
	{"a message waits", `SELECT FROM :schema.send('permit.filed', '{}')`, "waiting"},
	{"a message is dead", `INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts,
		conflicts, reason, error)
		VALUES ('records', gen_random_uuid(), 'permit.filed', '', '', 24, 0, 'attempts', 'no')`, "dead"},
}

func checkerSees(t *testing.T, dsn, log string) {
	l, err := readLog(log)
	must(t, err)
	db, err := openDatabase(t.Context(), dsn, "permits")
	must(t, err)
	defer db.pool.Close()
	r, err := db.readRun(t.Context(), l)
	must(t, err)
	for _, s := range sabotages {
		tx, err := db.pool.Begin(t.Context())
		must(t, err)
		sql := strings.ReplaceAll(s.sql, ":schema", pgx.Identifier{engineSchema(db.own)}.Sanitize())
		tag, err := tx.Exec(t.Context(), sql)
		must(t, err)
		if tag.RowsAffected() == 0 {
			t.Errorf("%s: the sabotage found nothing to do", s.name)
		}
		v, err := db.judgeIn(t.Context(), tx, l, r.pace(l))
		must(t, err)
		if len(v.differences) == 0 || v.differences[0].Rule != s.rule {
			t.Errorf("%s: want a difference %q, got %v", s.name, s.rule, v.differences)
		}
		must(t, tx.Rollback(t.Context()))
	}
}

// begun starts the program, and returns when it has published something.
func begun(t *testing.T, dsn string, args ...string) *exec.Cmd {
	t.Helper()
	c := program(t, dsn, args...)
	stderr, err := c.StderrPipe()
	must(t, err)
	must(t, c.Start())
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "published") && !strings.HasPrefix(lines.Text(), "published 0") {
			return c
		}
	}
	t.Fatalf("permits %v ended before it published anything: %v", args, c.Wait())
	return nil
}

// The program is killed, and interrupted: the same command brings the run to its end, with nothing lost or doubled.
func TestEndedRunIsContinued(t *testing.T) {
	t.Parallel()
	dsn, log := eddatest.DSN(t), generated(t, 60, 400)
	args := []string{"-log", log, "-for", "8s"}
	for signal, want := range map[os.Signal]int{syscall.SIGKILL: -1, os.Interrupt: 1} {
		c := begun(t, dsn, args...)
		must(t, c.Process.Signal(signal))
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != want {
			t.Errorf("after %v the exit code is %d, want %d", signal, code, want)
		}
	}
	out, story, code := ran(t, dsn, args...)
	const want = "cases=60 events=400 instances=60 timers=60 duplicates=0 lost=0\n"
	if code != 0 || !strings.HasPrefix(out, want) {
		t.Fatalf("exit code %d, want 0 and %s\n%s", code, want, story)
	}
	for name, wrong := range map[string][]string{
		"holds the run of another log": {"-verify", "-log", generated(t, 61, 400)},
		"with -store pessimistic":      {"-log", log, "-store", "optimistic"},
		"holds no run":                 {"-verify", "-log", log, "-schema", "nothing_here"},
		"holds no run of this program": {"-log", log, "-schema", "public"},
	} {
		if out, story, code := ran(t, dsn, wrong...); code != 1 || out != "" || !strings.Contains(story, name) {
			t.Errorf("exit code %d, want 1 and …%s…\n%s", code, name, story)
		}
	}
}

func TestWrongFlagsAreExplained(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"-log is missing":         {},
		"want optimistic or":      {"-log", "x", "-store", "y"},
		"-for 1ms: want 1s":       {"-log", "x", "-for", "1ms"},
		`no argument "x"`:         {"x"},
		"provided but not define": {"-nope"},
	} {
		if _, story, code := ran(t, "", args...); code != 2 || !strings.Contains(story, want) {
			t.Errorf("exit code %d, want 2 and …%s…\n%s", code, want, story)
		}
	}
	if _, story, code := ran(t, "", "-h"); code != 0 || !strings.Contains(story, "-store store") {
		t.Errorf("exit code %d of -h\n%s", code, story)
	}
}
