package pg_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestRow(t *testing.T) {
	t.Parallel()
	rows, err := pgdev.Connect(t).Query(t.Context(), `SELECT true, false, 7::int4, -7::int8, 'ä'::text, '\x00ff'::bytea,
		'01020304-0506-0708-090a-0b0c0d0e0f10'::uuid, '2024-02-29 12:34:56.789012+02'::timestamptz,
		'1999-12-31 23:59:59+00'::timestamptz,
		'(66051,772)'::tid, NULL::text, NULL::int8, NULL::bytea, NULL::uuid, NULL::timestamptz, NULL::bool, '{}'::json`,
		pgx.QueryResultFormats{pgx.BinaryFormatCode})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	r := pg.CurrentRow(rows)
	for name, right := range map[string]bool{
		"bool":       r.Bool(0) && !r.Bool(1),
		"int4":       r.Int(2) == 7,
		"int8":       r.Int(3) == -7,
		"text":       r.Text(4) == "ä",
		"bytea":      string(r.Bytes(5)) == "\x00\xff",
		"uuid":       r.UUID(6) == [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		"time":       r.Time(7).Equal(time.Date(2024, 2, 29, 10, 34, 56, 789012000, time.UTC)),
		"old time":   r.Time(8).Equal(time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)),
		"tid":        r.TID(9) == pg.TID{0, 1, 2, 3, 3, 4},
		"null":       r.Null(10) && !r.Null(0),
		"null text":  r.Text(10) == "",
		"null int":   r.Int(11) == 0,
		"null bytes": r.Bytes(12) == nil,
		"null uuid":  r.UUID(13) == [16]byte{},
		"null time":  r.Time(14).IsZero(),
		"null bool":  !r.Bool(15),
		"json":       r.Text(16) == "{}",
	} {
		if !right {
			t.Errorf("%s: %x", name, r)
		}
	}
}
