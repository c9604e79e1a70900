package bus

import (
	"bytes"

	"github.com/edda-go/edda/persistence"
	"github.com/jackc/pgx/v5"
)

// scratch is the memory of a batch that the next one of the same worker uses again. Without it half of a worker's
// time goes to the garbage collector.
type scratch struct {
	slabs     [][]message // of slabSize each
	used      int         // messages handed out
	asked     []*instance
	refs      []persistence.Ref
	find      map[handle]*instance
	holds     []handle // instances that memory says are this batch's
	instances []*instance
	writes    []persistence.Write
	lentBody  []byte // a copy of the body in hand, for a raw handler
}

const (
	slabSize = 64
	mostLent = 64 << 10 // a larger body gets memory of its own
)

// newBatch begins a batch on conn in the memory of the last one. Nothing of the last one may be used any more.
func (w *worker) newBatch(conn *pgx.Conn) *batch {
	s, arena, messages := w.last.scratch, w.last.arena, w.last.messages
	for n := range s.used {
		s.slabs[n/slabSize][n%slabSize] = message{}
	}
	clear(s.asked)
	clear(s.instances)
	clear(messages)
	clear(s.find)
	clear(s.writes)
	if s.find == nil {
		s.find = map[handle]*instance{}
	}
	arena.Reset()
	s.used, s.asked, s.refs = 0, s.asked[:0], s.refs[:0]
	s.holds, s.instances = s.holds[:0], s.instances[:0]
	b := &w.last
	*b = batch{scratch: s}
	b.ep, b.conn, b.arena, b.messages, b.in = w.Endpoint, conn, arena, messages[:0], &b.decoder
	b.shared = sharedTx{ep: w.Endpoint, conn: conn}
	b.reclaim = b.shared.takeBackSettings
	return b
}

// newMessage hands out the next message, empty.
func (s *scratch) newMessage() *message {
	if s.used == len(s.slabs)*slabSize {
		s.slabs = append(s.slabs, make([]message, slabSize))
	}
	m := &s.slabs[s.used/slabSize][s.used%slabSize]
	s.used++
	return m
}

// copyOf is a copy of a body for one call of a raw handler, which may write into it.
func (s *scratch) copyOf(body []byte) []byte {
	if len(body) > mostLent {
		return bytes.Clone(body)
	}
	s.lentBody = append(s.lentBody[:0], body...)
	return s.lentBody
}
