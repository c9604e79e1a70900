package pg

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
)

// Row reads the binary values of one result row without pgx's scan plans, which cost more than the rest of a batch's
// bookkeeping. The caller must use the column types of its own statement. The values are valid until the next row is
// read: Bytes must be copied to be kept.
type Row [][]byte

// CurrentRow returns the row that rows.Next stopped at.
func CurrentRow(rows pgx.Rows) Row { return rows.RawValues() }

// Null reports whether column i is NULL.
func (r Row) Null(i int) bool { return r[i] == nil }

// Bool reads a boolean.
func (r Row) Bool(i int) bool { return len(r[i]) == 1 && r[i][0] == 1 }

// Int reads an int4 or int8, 0 for NULL.
func (r Row) Int(i int) int64 {
	switch len(r[i]) {
	case 4:
		return int64(int32(binary.BigEndian.Uint32(r[i])))
	case 8:
		return int64(binary.BigEndian.Uint64(r[i]))
	}
	return 0
}

// Text reads text, json or varchar, "" for NULL.
func (r Row) Text(i int) string { return string(r[i]) }

// Bytes reads bytea, text or json without copying, nil for NULL.
func (r Row) Bytes(i int) []byte { return r[i] }

// UUID reads a uuid, the zero value for NULL.
func (r Row) UUID(i int) (id [16]byte) {
	copy(id[:], r[i])
	return id
}

// postgresEpoch is the zero of Postgres' timestamps in Unix microseconds (2000-01-01).
const postgresEpoch = 946_684_800_000_000

// Time reads a timestamptz, the zero time for NULL and for nothing else. Timestamps.Time writes the same value again,
// including infinite ones. A row may contain Go's zero time; it is read as the nanosecond before it.
func (r Row) Time(i int) time.Time {
	if len(r[i]) != 8 {
		return time.Time{}
	}
	t := time.UnixMicro(int64(binary.BigEndian.Uint64(r[i])) + postgresEpoch).UTC()
	if t.IsZero() {
		return t.Add(-time.Nanosecond)
	}
	return t
}

// TID is the place of a row version. It stays valid while the row is locked.
type TID [6]byte

// TID reads a tid.
func (r Row) TID(i int) (tid TID) {
	copy(tid[:], r[i])
	return tid
}
