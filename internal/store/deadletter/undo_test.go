package deadletter_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/recoverability"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func (s *shop) undo(number int64) recoverability.Undone {
	s.Helper()
	done, err := s.store.UndoJob(pgdev.Deadline(s), s.pool, number)
	if err != nil {
		s.Fatal(err)
	}
	return done
}

// letters returns all letters with their bodies.
func (s *shop) letters() (all []recoverability.Letter) {
	s.Helper()
	for _, l := range list(s.T, s.pool, s.store, recoverability.LetterFilter{Limit: 200}) {
		l, err := s.store.Show(s.Context(), s.pool, l.Number)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// fill sets every column of the letters that does not come from their messages, including columns of later migrations.
func (s *shop) fill() {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT column_name || '=' || udt_name FROM information_schema.columns
		WHERE table_schema = $1 AND table_name = 'dead_letter'
			AND column_name NOT IN ('id', 'endpoint', 'message_id', 'kind', 'header', 'body')`, s.schema.Name())
	if err != nil {
		s.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) < 8 {
		s.Fatal(columns, err)
	}
	values := map[string]string{"text": "'filled'", "int4": "7", "timestamptz": "'2001-02-03 04:05:06.000007+00'"}
	for _, column := range columns {
		name, kind, _ := strings.Cut(column, "=")
		if values[kind] == "" {
			s.Fatalf("give this test a value of type %s, for the column %s", kind, name)
		}
		if _, err := s.owner.Exec(s.Context(), s.schema.Render("UPDATE :schema.dead_letter SET "+name+" = "+
			values[kind])); err != nil {
			s.Fatal(err)
		}
	}
}

// rows returns the letters with all their columns.
func (s *shop) rows() (all []map[string]any) {
	s.Helper()
	err := s.pool.QueryRow(s.Context(), s.schema.Render(
		"SELECT coalesce(json_agg(d ORDER BY id), '[]') FROM :schema.dead_letter d")).Scan(&all)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// An undo turns each message that still waits and was not attempted into its dead letter again, equal in every
// column, and leaves the others where they are.
func TestUndo(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(120, "orders", "stock")...)
	s.fill()
	before := s.rows()
	for _, to := range []string{"", "stock"} {
		number := s.job(recoverability.Job{Action: recoverability.JobRetry, To: to})
		if j := s.run(number); j.Ended != 120 || j.To != to {
			t.Errorf("%+v", j)
		}
		if done := s.undo(number); done != (recoverability.Undone{Returned: 120}) {
			t.Errorf("sent to %q: %+v", to, done)
		}
		if diff := cmp.Diff(before, s.rows()); diff != "" {
			t.Errorf("sent to %q and back: %s", to, diff)
		}
		n := s.count(`SELECT (SELECT count(*) FROM :schema.queue_1) + (SELECT count(*) FROM :schema.queue_2)`)
		if n > 0 {
			t.Errorf("%d messages are in both places", n)
		}
		j, err := s.store.Job(t.Context(), s.pool, number)
		if again := s.undo(number); err != nil || j.Undone != 120 || again != (recoverability.Undone{}) {
			t.Errorf("%+v, %v; once more: %+v", j, err, again)
		}
	}
}

func TestUndoLeavesWhatWasTouched(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(7, "orders")...)
	number := s.job(recoverability.Job{Action: recoverability.JobRetry})
	s.run(number)
	touched := func(n int, sql string) {
		s.exec(sql + ` WHERE id = (SELECT id FROM :schema.queue_1 ORDER BY id OFFSET ` + strconv.Itoa(n) + ` LIMIT 1)`)
	}
	touched(0, `UPDATE :schema.queue_1 SET attempt = 1, first_failed = now()`)
	touched(1, `UPDATE :schema.queue_1 SET claim = 1, owner = gen_random_uuid(), was_due = due,
		due = now() + interval '1 minute'`)
	touched(2, `UPDATE :schema.queue_1 SET conflict = 2`)
	touched(3, `DELETE FROM :schema.queue_1`)
	// a worker has one message in hand
	tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err == nil {
		_, err = tx.Exec(t.Context(), s.schema.Render(`SELECT FROM :schema.queue_1 ORDER BY id DESC LIMIT 1
			FOR UPDATE`))
	}
	if err != nil {
		t.Fatal(err)
	}
	done := s.undo(number)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done != (recoverability.Undone{Returned: 2, Handled: 5}) {
		t.Errorf("%+v", done)
	}
	if dead, waits := len(s.letters()), s.count("SELECT count(*) FROM :schema.queue_1"); dead != 2 || waits != 4 {
		t.Errorf("%d are dead, %d wait", dead, waits)
	}
	if done = s.undo(number); done != (recoverability.Undone{Returned: 1, Handled: 4}) { // the worker returned it
		t.Errorf("once more: %+v", done)
	}
}

// UndoJob finds messages that a distributor has moved to a partition, ends an open job, and refuses a job that it
// cannot undo.
func TestUndoOfOtherJobs(t *testing.T) {
	t.Parallel()
	s := newShop(t, numbered(3, "orders")...)
	number := s.job(recoverability.Job{Action: recoverability.JobRetry, Plan: []int{2}})
	if _, err := s.owner.Exec(t.Context(), s.schema.Render(`SELECT :schema.create_queue('orders.p0')`)); err != nil {
		t.Fatal(err)
	}
	j := s.first(number)
	s.exec(`WITH gone AS (DELETE FROM :schema.queue_1 RETURNING *)
		INSERT INTO :schema.queue_3 SELECT * FROM gone`)
	if done := s.undo(number); j.Ended != 2 || done.Returned != 2 {
		t.Errorf("%+v, %+v", j, done)
	}
	if j, err := s.store.Job(t.Context(), s.pool, number); err != nil || j.State != recoverability.JobCancelled {
		t.Errorf("%+v, %v", j, err)
	}
	number = s.job(recoverability.Job{Action: recoverability.JobDiscard, Reason: "x"})
	for _, n := range []int64{number, 99} {
		if _, err := s.store.UndoJob(t.Context(), s.pool, n); !errors.Is(err, deadletter.ErrNoJob) {
			t.Errorf("undo of job %d: %v", n, err)
		}
	}
}
