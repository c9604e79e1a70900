package pg_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
)

// The elements of an Array arrive as if they had been written as literals.
func TestArrays(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) { testArrays(t, mode) })
	}
}

// textOnly is a codec without a binary form, as a user may have registered for a type.
type textOnly struct{ pgtype.Codec }

func (textOnly) FormatSupported(format int16) bool { return format == pgtype.TextFormatCode }

// The connection may be of a user's pool, whose types stay as they are.
func TestArraysAsText(t *testing.T) {
	t.Parallel()
	conn := pgdev.Connect(t)
	types := conn.TypeMap()
	for _, oid := range []uint32{pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID, pgtype.Int4ArrayOID,
		pgtype.Int8ArrayOID, pgtype.TimestamptzArrayOID, pgtype.TIDArrayOID} {
		array, _ := types.TypeForOID(oid)
		element := *array.Codec.(*pgtype.ArrayCodec).ElementType
		element.Codec = textOnly{element.Codec}
		types.RegisterType(&pgtype.Type{Name: array.Name, OID: oid, Codec: &pgtype.ArrayCodec{ElementType: &element}})
	}
	pg.RegisterArrays(types)
	if format := types.FormatCodeForOID(pgtype.UUIDArrayOID); format != pgtype.TextFormatCode {
		t.Errorf("the format of a user's type is %d", format)
	}
	testArraysOn(t, conn, pgx.QueryExecModeCacheStatement)
}

func testArrays(t *testing.T, mode pgx.QueryExecMode) {
	t.Parallel()
	conn := pgdev.Connect(t)
	pg.RegisterArrays(conn.TypeMap())
	testArraysOn(t, conn, mode)
}

func testArraysOn(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
	t.Helper()
	uuids, texts, byteas, ints, bigs, times, tids := pg.UUIDs(), pg.Texts(), pg.Byteas(), pg.Ints(), pg.BigInts(),
		pg.Timestamps(), pg.TIDs()
	uuids.UUID([16]byte{1})
	uuids.Null()
	texts.Text("")
	texts.Text(`ä,{"}`)
	texts.Bytes([]byte("x"))
	texts.Null()
	byteas.Bytes([]byte{0, 255})
	byteas.Bytes(nil)
	byteas.Bytes(make([]byte, 100_000))
	ints.Int(-1)
	ints.Int(1<<31 - 1)
	bigs.BigInt(-1 << 63)
	times.Time(time.Date(2024, 2, 29, 12, 0, 0, 1, time.UTC)) // a nanosecond is rounded up
	times.Time(time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC))
	times.Time(time.Time{})
	tids.TID(pg.TID{0, 1, 2, 3, 3, 4})

	for _, c := range []struct {
		array *pg.Array
		want  string // an expression of the same type
		count int
	}{
		{uuids, "ARRAY['01000000-0000-0000-0000-000000000000', NULL]::uuid[]", 2},
		{texts, `ARRAY['', 'ä,{"}', 'x', NULL]::text[]`, 4},
		{byteas, `ARRAY['\x00ff', '', decode(repeat('00', 100000), 'hex')]::bytea[]`, 3},
		{ints, "ARRAY[-1, 2147483647]::int[]", 2},
		{bigs, "ARRAY[-9223372036854775808]::bigint[]", 1},
		{times, "ARRAY['2024-02-29 12:00:00.000001+00', '1970-01-01 00:00:00+00', NULL]::timestamptz[]", 3},
		{tids, "ARRAY['(66051,772)']::tid[]", 1},
		{pg.UUIDs(), "'{}'::uuid[]", 0},
		{pg.Texts(), "'{}'::text[]", 0},
	} {
		kind := c.want[strings.LastIndex(c.want, "::"):]
		var same bool
		var got string
		err := conn.QueryRow(t.Context(), "SELECT $1"+kind+" IS NOT DISTINCT FROM "+c.want+", left($1"+kind+
			"::text, 200)", mode, c.array).Scan(&same, &got)
		if err != nil || !same || c.array.Len() != c.count {
			t.Errorf("%s: got %s of %d elements, %v", c.want, got, c.array.Len(), err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SELECT $1::uuid[]", mode, uuids); err == nil {
		t.Error("an array was sent a second time, when its memory may be another's")
	}
}
