package bus

import (
	"slices"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

// smallUpTo is the size above which a batch that reads up to so many messages leaves a header or a body behind, so that
// all others together have no more bytes than the batch may read.
func smallUpTo(bytes, messages int) int { return bytes / max(1, 2*messages) }

// largeOnes are messages whose headers and bodies a batch has left behind.
type largeOnes []*message

// queue queues the statement that reads what was left behind. A message that it finds is taken out of l.
func (l *largeOnes) queue(pipeline *pgx.Batch, q *queue, keep func([]byte) []byte) {
	dues, ids := pg.Timestamps(), pg.UUIDs()
	for _, m := range *l {
		dues.Time(m.due)
		ids.UUID(m.id)
	}
	pipeline.Queue(q.sql("read_large"), dues, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			r := pg.CurrentRow(rows)
			m := (*l)[r.Int(0)]
			m.header, m.body = keep(r.Bytes(1)), keep(r.Bytes(2))
			(*l)[r.Int(0)] = nil
		}
		*l = slices.DeleteFunc(*l, func(m *message) bool { return m == nil })
		return rows.Err()
	})
}
