package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// taken is a row of take.
type taken struct {
	claim pgtype.TID
	id    [16]byte
	kind  string
	body  []byte
}

func (s *site) take(tx pgx.Tx, endpoint string, most int) (rows []taken) {
	s.Helper()
	found, err := tx.Query(s.Context(), s.schema.Render(
		`SELECT claim, message_id, kind, body FROM :schema.take($1, $2)`), endpoint, most)
	if err != nil {
		s.Fatal(err)
	}
	var r taken
	_, err = pgx.ForEachRow(found, []any{&r.claim, &r.id, &r.kind, &r.body}, func() error {
		r.body = append([]byte(nil), r.body...)
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

// beginUndone begins a transaction that is rolled back at the end of the test.
func (s *site) beginUndone() pgx.Tx {
	s.Helper()
	tx := s.begin(pgx.ReadCommitted)
	s.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(s.Context())) })
	return tx
}

func (s *site) done(tx pgx.Tx, endpoint string, rows ...taken) error {
	claims, ids := []pgtype.TID{}, [][16]byte{}
	for _, r := range rows {
		claims, ids = append(claims, r.claim), append(ids, r.id)
	}
	_, err := tx.Exec(s.Context(), s.schema.Render(`SELECT :schema.done($1, $2, $3)`), endpoint, claims, ids)
	return err
}

func bodies(rows []taken) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.kind+" "+string(r.body))
	}
	return strings.Join(all, ", ")
}

// Two takers share a queue in order and without waiting; messages that one does not finish can be taken again.
func TestTakeAndDone(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.exec(`SELECT :schema.send_all('orders',
		'[{"kind":"a","body":"MQ=="},{"kind":"b","body":"Mg==","header":{"x":"y"}},
		{"kind":"c","body":"Mw==","id":"00000000-0000-0000-0000-000000000003"},
		{"kind":"c","body":"NA==","id":"00000000-0000-0000-0000-000000000003"}]')`)
	first, second := s.beginUndone(), s.beginUndone()
	one := s.take(first, "orders", 3)
	if got := bodies(one); got != "a 1, b 2, c 3" {
		t.Fatalf("the first taker got %q", got)
	}
	if got := bodies(s.take(second, "orders", 3)); got != "c 4" {
		t.Errorf("the second taker got %q", got)
	}
	if err := s.done(first, "orders", one[0], one[2]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Commit(t.Context()), second.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	third := s.beginUndone()
	left := s.take(third, "orders", 10)
	if got := bodies(left); got != "b 2, c 4" {
		t.Errorf("left are %q, want b 2, c 4", got)
	}
	left[0].id = one[0].id // a claim of a different transaction, whose place now has a different row
	if err := s.done(third, "orders", left[0]); pgerr.Code(err) != "ED001" {
		t.Errorf("done with a stale claim: %v, want ED001", err)
	}
}

func TestTakeAndSendAllRefuse(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, c := range []struct{ sql, code string }{
		{`SELECT :schema.take('nobody', 1)`, "ED002"},
		{`SELECT :schema.take(NULL, 1)`, "ED002"},
		{`SELECT :schema.take('orders', NULL)`, "22023"}, // it used to lock the whole queue
		{`SELECT :schema.take('orders', 0)`, "22023"},
		{`SELECT :schema.take('orders', 10001)`, "22023"},
		{`SELECT :schema.done('nobody', '{}', '{}')`, "ED002"},
		{`SELECT :schema.send_all('nobody', '[]')`, "ED002"},
		{`SELECT :schema.send_all('orders', '[{"kind":"Bad","body":""}]')`, "22023"},
		{`SELECT :schema.send_all('orders', '[{"kind":"k"}]')`, "22023"},
		{`SELECT :schema.send_all('orders', '[{"kind":"k","body":"","header":{"a":1}}]')`, "22023"},
		{`SELECT :schema.send_all('orders', E'[{"kind":"k","body":"","header":{"a":"\\u0000"}}]')`, "22P05"},
	} {
		_, err := s.pool.Exec(t.Context(), s.schema.Render(c.sql))
		if pgerr.Code(err) != c.code {
			t.Errorf("%s\ngot  %v\nwant %s", c.sql, err, c.code)
		}
	}
}

// The plans of take and done on a full queue that was never analysed find rows by index and by place.
func TestTakeReadsNoMoreThanItGives(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.exec(`INSERT INTO ` + s.table("orders") + ` (due, id, kind, header, body)
		SELECT now() - n * interval '1 second', gen_random_uuid(), 'k', '{}', '{}' FROM generate_series(1, 20000) n`)
	tx := s.beginUndone()
	read := func() (n int) {
		err := tx.QueryRow(t.Context(), `SELECT seq_tup_read FROM pg_stat_xact_all_tables WHERE relid = '`+
			s.table("orders")+`'::regclass`).Scan(&n)
		if err != nil {
			t.Fatal(fmt.Errorf("statistics: %w", err))
		}
		return n
	}
	rows := s.take(tx, "orders", 10)
	if err := s.done(tx, "orders", rows...); err != nil {
		t.Fatal(err)
	}
	if n := read(); n != 0 || len(rows) != 10 {
		t.Errorf("%d rows taken, %d read by a scan of the table", len(rows), n)
	}
}
