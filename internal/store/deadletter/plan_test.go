package deadletter_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/jackc/pgx/v5/pgxpool"
)

const always, never = "-infinity", "infinity"

// Operators open a list during an incident: the table is full, and was never analysed.
func TestListsAndRetriesDoNotReadTheWholeTable(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	fill := `WITH d AS (
			INSERT INTO :schema.discarded (endpoint, message_id, kind, saga, key, reason)
			SELECT 'e1', gen_random_uuid(), 'k', '', '', 'no' FROM generate_series(1, 20000)),
		e AS (
			INSERT INTO :schema.dead_letter_edit (letter, endpoint, message_id, sent_as, kind, header, body, reason)
			SELECT n, 'e1', gen_random_uuid(), gen_random_uuid(), 'k', '', '', '' FROM generate_series(1, 20000) n)
		INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error,
		error_group)
		SELECT 'e' || n % 100, lpad(to_hex(n), 32, '0')::uuid, 'k', '', '', 1, 0, '', '', 'g' || n % 100
		FROM generate_series(1, 20000) n`
	message := "00000000-0000-0000-0000-000000000007"
	pgtest.Probes{
		SQL:  deadletter.Statements(deadletter.New(schema)),
		Fill: fill, MaxRows: 200, // the letters of one endpoint, or of one group
		PlannedAnew: true,
		Statements: map[string][]string{
			"walk":             {"100", "15000", "100", "10", "", "", always, never},
			"walk_of_endpoint": {"100", "15000", "100", "10", "", "e7", always, never},
			"walk_of_group":    {"100", "15000", "100", "10", "", "", always, never, "g7"},
			"walk_of_message":  {"0", "15000", "100", "10", "", "", always, never, "", message},
			"groups":           {"g3", "10", "15"},
			"letters":          {"{5,6,7}"}, "take_many": {"{5,6,7}"}, "discard_many": {"{5,6,7}", "no"},
			"letters_of":     {"{" + message + "}"},
			"discarded_of":   {"{" + message + "}"},
			"list_discarded": {"0", "", "50", "", ""}, "list_edited": {"0", "", "50"},
			"prune_discarded": {"2592000", "1000"},
			"new_job":         {"retry", "", "", "", message, always, never, "", "1", "", "{1,5}", "{}"},
		},
	}.Check(t, pool, schema)
	pool, schema = pgtest.Database(t) // the first has statistics of rolled back rows
	pgtest.Probes{
		SQL:  deadletter.Statements(deadletter.New(schema)),
		Fill: fill, MaxRows: 1, PlannedAnew: true,
		Statements: map[string][]string{"show": {"7"}, "take": {"7"}, "discard": {"7", "no longer wanted"}},
	}.Check(t, pool, schema)
}

// A plan that was made when vacuum had found the table of letters empty would read all of the full table.
func TestChangesOfLettersKeepNoPlan(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	write(t, s.pool, s.store, s.letter)
	kept := pgtest.Kept(t, s.pool, func(conn *pgxpool.Conn) {
		letters := list(t, s.pool, s.store, recoverability.LetterFilter{})
		_, err := s.store.Show(t.Context(), conn, letters[0].Number)
		retried := s.store.Retry(t.Context(), conn, s.resend, letters[0].Number)
		discarded := s.store.Discard(t.Context(), conn, letters[1].Number, "no")
		number, made := s.store.NewJob(t.Context(), conn, recoverability.Job{Action: recoverability.JobRetry})
		cancelled := s.store.CancelJob(t.Context(), conn, number)
		if err := errors.Join(err, retried, discarded, made, cancelled); err != nil {
			t.Error(err)
		}
	})
	if len(kept) > 0 {
		t.Errorf("the connection keeps the plans of %v", kept)
	}
}

// Manual operations stay fast with a million dead letters in three groups, in a table that was never analysed.
func TestAMillionDeadLetters(t *testing.T) {
	t.Parallel()
	owner := pgtest.Pool(t)
	schema := pgtest.Migrated(t, owner)
	store := deadletter.New(schema)
	if _, err := owner.Exec(t.Context(), schema.Render(`
		INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body, attempts, conflicts, reason, error,
		error_group, died)
		SELECT 'e' || n % 3, lpad(to_hex(n), 32, '0')::uuid, 'k' || n % 3, '{}', '{}', 24, 0,
		'given up by the policy', 'no ' || n, 'g' || n % 3,
		       '2026-01-01 00:00:00+00'::timestamptz + n * interval '1 second'
		FROM generate_series(1, 1000000) n`)); err != nil {
		t.Fatal(err)
	}
	took := map[string]time.Duration{}
	timed := func(what string, do func() error) {
		t.Helper()
		begun := time.Now()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		took[what] = time.Since(begun)
	}
	timed("groups", func() error {
		groups, next, err := store.Groups(t.Context(), owner, recoverability.GroupFilter{})
		if err == nil && (len(groups) != 3 || next != "" || !groups[0].Capped || groups[2].Example != 999998) {
			err = fmt.Errorf("%d groups, next %q: %+v", len(groups), next, groups)
		}
		return err
	})
	late := time.Date(2026, 1, 12, 13, 46, 30, 0, time.UTC) // ten seconds before the last letter
	for what, f := range map[string]recoverability.LetterFilter{
		"list of a group": {Group: "g1"}, "list of a kind": {Kind: "k2"},
		"list of the last ten seconds": {DiedFrom: late},
	} {
		timed(what, func() error { _, err := store.List(t.Context(), owner, f); return err })
	}
	for what, f := range map[string]recoverability.LetterFilter{"count of a group": {Group: "g1"},
		"count of a time": {DiedFrom: late}} {
		timed(what, func() error { _, err := store.Count(t.Context(), owner, f); return err })
	}
	if n, err := store.Count(t.Context(), owner, recoverability.LetterFilter{DiedFrom: late}); err != nil || n != 11 {
		t.Errorf("%d letters died in the last ten seconds, %v; want 11", n, err)
	}
	number, err := store.NewJob(t.Context(), owner,
		recoverability.Job{Action: recoverability.JobDiscard, Reason: "late",
			Filter: recoverability.LetterFilter{DiedFrom: late}})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	timed("a job for eleven of a million", func() error {
		j, err := store.RunJob(t.Context(), owner, nil, number, func(recoverability.Job) { steps++ })
		if err == nil && j.Ended != 11 {
			err = fmt.Errorf("%+v", j)
		}
		return err
	})
	t.Logf("%d steps; %v", steps, took)
}

// The messages of a stage are searched at their first due time, and at later times only if that finds no message.
func TestMessagesOfAStageAreLookedForWhereTheyWereSent(t *testing.T) {
	t.Parallel()
	owner := pgtest.Pool(t)
	schema := pgtest.Migrated(t, owner)
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const near, far, before, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002",
		"00000000-0000-0000-0000-000000000003", "00000000-0000-0000-0000-000000000004"
	pgtest.Exec(t, owner, schema.Render(`SELECT :schema.create_queue('cards')`))
	for id, after := range map[string]time.Duration{
		near: time.Second, far: time.Hour, before: -time.Second, other: time.Second,
	} {
		pgtest.Exec(t, owner, schema.Render(`INSERT INTO :schema.queue_1 (due, id, kind, header, body)
			VALUES ($1, $2, 'k', '', '')`), since.Add(after), id)
	}
	for _, c := range []struct {
		gone  string
		whole bool
		want  int
	}{{"", false, 1}, {"", true, 2}, {near, false, 1}, {far, false, 0}} {
		pgtest.Exec(t, owner, schema.Render(`DELETE FROM :schema.queue_1 WHERE id::text = $1`), c.gone)
		var waiting int
		err := owner.QueryRow(t.Context(), schema.Render(`SELECT waiting FROM :schema.stage_fates('cards',
			$1::text[]::uuid[], $2, $3)`), []string{near, far, before}, since, c.whole).Scan(&waiting)
		if err != nil || waiting != c.want {
			t.Errorf("without %q, whole %v, it is %d, %v, want %d", c.gone, c.whole, waiting, err, c.want)
		}
	}
}
