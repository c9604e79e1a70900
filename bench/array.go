package main

import "encoding/binary"

// The object ids of the element types the ceiling sends.
const (
	oidBytea = 17
	oidText  = 25
	oidTID   = 27
	oidJSON  = 114
	oidUUID  = 2950
)

// array builds the binary form of a one-dimensional Postgres array in place: no reflection, and no
// garbage once it has grown. A peer that must be hard to beat cannot afford less.
type array struct {
	buf   []byte
	count uint32
}

const arrayHeader = 20 // dimensions, null flag, element type, length, lower bound

// reset empties the array and names its element type.
func (a *array) reset(oid uint32) {
	a.buf = append(a.buf[:0], 0, 0, 0, 1, 0, 0, 0, 0)
	a.buf = binary.BigEndian.AppendUint32(a.buf, oid)
	a.buf = append(a.buf, 0, 0, 0, 0, 0, 0, 0, 1)
	a.count = 0
}

// add appends one element in its own binary form.
func (a *array) add(element []byte) {
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(element)))
	a.buf = append(a.buf, element...)
	a.count++
}

// bytes is the finished parameter, valid until the next reset.
func (a *array) bytes() []byte {
	binary.BigEndian.PutUint32(a.buf[arrayHeader-8:], a.count)
	return a.buf
}
