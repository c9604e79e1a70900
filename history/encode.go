package history

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/edda-go/edda/saga"
)

// The format of a page: the number of the format, the page's time, the host, and then one record after another. A
// record begins with its tag. Numbers are varints, and times are microseconds before the time of the page. A name that
// occurs again is written as the number of its first occurrence. The host of a change by an operator is the operator.
const (
	format = 1

	tagChange  = 1
	tagMessage = 2

	stateNone  = 0
	stateWhole = 1
	stateDelta = 2 // see Page.delta
)

// Fate is the result of an attempt of a message.
type Fate uint8

// The fates.
const (
	Handled   Fate = iota + 1
	Retried        // the attempt failed, and a retry follows
	Died           // it is a dead letter, or the failure of a run
	Discarded      // it was consumed without effect
	Relayed        // a relay gave it to a foreign system
	Ingested       // it came from a foreign system
)

var fates = [...]string{"", "handled", "retried", "dead", "discarded", "relayed", "ingested"}

func (f Fate) String() string {
	if int(f) < len(fates) {
		return fates[f]
	}
	return "unknown"
}

// mostSpare is the largest number of bytes of the buffer that are reused for the next page.
const mostSpare = 1 << 20

// encoder writes a page.
type encoder struct {
	buf   []byte
	names map[string]uint64
	now   int64 // microseconds
}

func (e *encoder) reset(now time.Time) {
	if e.names == nil {
		e.names = map[string]uint64{}
	}
	clear(e.names)
	e.now = now.UnixMicro()
	if cap(e.buf) > mostSpare {
		e.buf = nil
	}
	e.buf = append(e.buf[:0], format)
	e.buf = binary.AppendVarint(e.buf, e.now)
}

func (e *encoder) byte(b byte)      { e.buf = append(e.buf, b) }
func (e *encoder) id(id saga.ID)    { e.buf = append(e.buf, id[:]...) }
func (e *encoder) number(n uint64)  { e.buf = binary.AppendUvarint(e.buf, n) }
func (e *encoder) raw(b []byte)     { e.buf = append(e.buf, b...) }
func (e *encoder) bytes(b []byte)   { e.number(uint64(len(b))); e.raw(b) }
func (e *encoder) text(text string) { e.number(uint64(len(text))); e.buf = append(e.buf, text...) }

func (e *encoder) flag(on bool) {
	if on {
		e.byte(1)
		return
	}
	e.byte(0)
}

func (e *encoder) name(name string) {
	if n, ok := e.names[name]; ok {
		e.number(n)
		return
	}
	e.names[name] = uint64(len(e.names) + 1)
	e.number(0)
	e.text(name)
}

// time writes 0 for the zero time, and other times as other numbers.
func (e *encoder) time(t time.Time) {
	if t.IsZero() {
		e.number(0)
		return
	}
	before := e.now - t.UnixMicro()
	e.number(uint64(before<<1^before>>63) + 1)
}

// digest distinguishes states.
func digest(state []byte) uint64 {
	h := fnv.New32a()
	h.Write(state)
	return uint64(h.Sum32())
}
