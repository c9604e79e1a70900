package pg

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Array builds a one-dimensional array parameter in Postgres' binary form, element by element, as a batch
// collects its rows. pgx's own arrays box each element in an interface and look up a plan for it.
//
// An Array is sent once: encoding it gives its memory to the next one. The connection must have been prepared with
// RegisterArrays. Not safe for concurrent use.
type Array struct {
	element uint32
	count   int
	nulls   bool
	spent   bool
	data    *[]byte
}

// spares keep the memory of arrays that were sent, so that a batch does not grow ten of them from nothing; there is
// one channel for each element type, because arrays of one type have similar sizes. They are channels and not a
// sync.Pool, because garbage collections empty a sync.Pool, and spares are meant to avoid those.
var spares = newSpares()

const (
	sparesKept = 16        // for each element type
	mostSpare  = 512 << 10 // bytes; a larger one is not kept
)

func newSpares() map[uint32]chan *[]byte {
	spares := map[uint32]chan *[]byte{}
	for _, element := range []uint32{
		pgtype.UUIDOID, pgtype.TextOID, pgtype.JSONOID, pgtype.ByteaOID, pgtype.Int4OID, pgtype.Int8OID,
		pgtype.TimestamptzOID, pgtype.TIDOID,
	} {
		spares[element] = make(chan *[]byte, sparesKept)
	}
	return spares
}

func newArray(element uint32) *Array {
	select {
	case data := <-spares[element]:
		return &Array{element: element, data: data}
	default:
		return &Array{element: element, data: new([]byte)}
	}
}

// UUIDs returns an empty uuid[].
func UUIDs() *Array { return newArray(pgtype.UUIDOID) }

// Texts returns an empty text[].
func Texts() *Array { return newArray(pgtype.TextOID) }

// JSONs returns an empty json[].
func JSONs() *Array { return newArray(pgtype.JSONOID) }

// Byteas returns an empty bytea[].
func Byteas() *Array { return newArray(pgtype.ByteaOID) }

// Ints returns an empty int4[].
func Ints() *Array { return newArray(pgtype.Int4OID) }

// BigInts returns an empty int8[].
func BigInts() *Array { return newArray(pgtype.Int8OID) }

// Timestamps returns an empty timestamptz[].
func Timestamps() *Array { return newArray(pgtype.TimestamptzOID) }

// TIDs returns an empty tid[].
func TIDs() *Array { return newArray(pgtype.TIDOID) }

// Len returns the number of elements.
func (a *Array) Len() int { return a.count }

func (a *Array) size(n int32) {
	a.count++
	*a.data = binary.BigEndian.AppendUint32(*a.data, uint32(n))
}

// Null appends a NULL.
func (a *Array) Null() {
	a.nulls = true
	a.size(-1)
}

// UUID appends an element to UUIDs.
func (a *Array) UUID(id [16]byte) {
	a.size(16)
	*a.data = append(*a.data, id[:]...)
}

// Text appends an element to Texts.
func (a *Array) Text(s string) {
	a.size(int32(len(s)))
	*a.data = append(*a.data, s...)
}

// Bytes appends an element to Byteas, Texts or JSONs. nil is an empty value, not NULL.
func (a *Array) Bytes(b []byte) {
	a.size(int32(len(b)))
	*a.data = append(*a.data, b...)
}

// Int appends an element to Ints.
func (a *Array) Int(n int) {
	a.size(4)
	*a.data = binary.BigEndian.AppendUint32(*a.data, uint32(int32(n)))
}

// BigInt appends an element to BigInts.
func (a *Array) BigInt(n int64) {
	a.size(8)
	*a.data = binary.BigEndian.AppendUint64(*a.data, uint64(n))
}

// Time appends an element to Timestamps, rounded up to the microsecond; the zero time is NULL.
func (a *Array) Time(t time.Time) {
	if t.IsZero() {
		a.Null()
		return
	}
	a.BigInt(t.Add(time.Microsecond-1).UnixMicro() - postgresEpoch)
}

// TID appends an element to TIDs.
func (a *Array) TID(tid TID) {
	a.size(6)
	*a.data = append(*a.data, tid[:]...)
}

func (a *Array) appendTo(buf []byte) []byte {
	buf = slices.Grow(buf, 20+len(*a.data))
	if a.count == 0 {
		buf = binary.BigEndian.AppendUint32(buf, 0) // dimensions
		buf = binary.BigEndian.AppendUint32(buf, 0)
		return binary.BigEndian.AppendUint32(buf, a.element)
	}
	hasNull := uint32(0)
	if a.nulls {
		hasNull = 1
	}
	buf = binary.BigEndian.AppendUint32(buf, 1)
	buf = binary.BigEndian.AppendUint32(buf, hasNull)
	buf = binary.BigEndian.AppendUint32(buf, a.element)
	buf = binary.BigEndian.AppendUint32(buf, uint32(a.count))
	buf = binary.BigEndian.AppendUint32(buf, 1) // lower bound
	return append(buf, *a.data...)
}

// RegisterArrays makes a connection accept *Array for the array types above. Every other value goes to the codec that
// it had before, in the format that the codec prefers: the connection may be of a user's pool.
func RegisterArrays(types *pgtype.Map) {
	for _, oid := range []uint32{
		pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.JSONArrayOID, pgtype.ByteaArrayOID, pgtype.Int4ArrayOID,
		pgtype.Int8ArrayOID, pgtype.TimestamptzArrayOID, pgtype.TIDArrayOID,
	} {
		if t, ok := types.TypeForOID(oid); ok {
			types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: arrayCodec{t.Codec}})
		}
	}
}

// EnsureArrays is RegisterArrays for a connection that may have been prepared before: registering costs more than a
// statement.
func EnsureArrays(types *pgtype.Map) {
	if t, ok := types.TypeForOID(pgtype.UUIDArrayOID); ok {
		if _, done := t.Codec.(arrayCodec); done {
			return
		}
	}
	RegisterArrays(types)
}

type arrayCodec struct{ pgtype.Codec }

func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(*Array); ok {
		if format == pgtype.BinaryFormatCode {
			return arrayPlan{}
		}
		return arrayTextPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type arrayPlan struct{}

func (arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(*Array)
	if a.spent {
		return nil, errSpent
	}
	buf = a.appendTo(buf)
	a.spend()
	return buf, nil
}

var errSpent = errors.New("pg: an Array was sent a second time")

func (a *Array) spend() {
	a.spent = true
	if cap(*a.data) <= mostSpare {
		*a.data = (*a.data)[:0]
		select {
		case spares[a.element] <- a.data:
		default:
		}
	}
	a.data = nil
}
