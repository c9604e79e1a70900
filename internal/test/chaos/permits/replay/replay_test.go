package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/eddatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

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
	{"a timer fired early", `UPDATE firing SET fired = (SELECT begun FROM run) WHERE case_id = 'case-19'`, "timer"},
	{"a message waits", `SELECT FROM :schema.send('permit.filed', '{}')`, "waiting"},
	{"a message is dead", `INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts,
		conflicts, reason, error)
		VALUES ('records', gen_random_uuid(), 'permit.filed', '', '', 24, 0, 'attempts', 'no')`, "dead"},
}

// A log is replayed, and each sabotage of the outcome is a difference.
func TestCheckSeesEachDifference(t *testing.T) {
	dsn, path := eddatest.DSN(t), filepath.Join(t.TempDir(), "log.csv")
	t.Setenv("DATABASE_URL", dsn)
	rows := "case,activity,time,deadline\n"
	for n := range 60 {
		rows += fmt.Sprintf("case-%d,T1,2011-03-%02d 09:00:00.000000+01:00,2011-03-%02d 09:00:00.000000+01:00\n", n%20,
			1+n%28, 10+n%20)
	}
	must(t, os.WriteFile(path, []byte(rows), 0o600))
	must(t, start(t.Context(), path, time.Second, false))
	l, err := readLog(path)
	must(t, err)
	db, err := openDatabase(t.Context(), dsn)
	must(t, err)
	defer db.pool.Close()
	p, _, err := db.readRun(t.Context(), l)
	must(t, err)
	for _, s := range sabotages {
		tx, err := db.pool.Begin(t.Context())
		must(t, err)
		tag, err := tx.Exec(t.Context(), strings.ReplaceAll(s.sql, ":schema", engine))
		must(t, err)
		if tag.RowsAffected() == 0 {
			t.Errorf("%s: the sabotage found nothing to do", s.name)
		}
		v, err := db.judgeIn(t.Context(), tx, l, p)
		must(t, err)
		if len(v.differences) == 0 || v.differences[0].Rule != s.rule {
			t.Errorf("%s: want a difference %q, got %v", s.name, s.rule, v.differences)
		}
		must(t, tx.Rollback(t.Context()))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
