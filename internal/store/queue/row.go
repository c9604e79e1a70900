package queue

import (
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Row is one message in the columns of its queue.
type Row struct {
	Due         time.Time
	ID          saga.ID
	Sent        time.Time
	FirstFailed time.Time // zero: it has not failed
	Attempt     int       // failed attempts so far
	Conflict    int       // lost saves that were written down
	Kind        string
	Header      []byte
	Body        []byte
}

// Position returns the row's place in its queue.
func (r *Row) Position() Position { return Position{Due: r.Due, ID: r.ID} }

// Columns of every statement that returns messages: the fields of Row, in its order, followed by these two. Further
// columns begin at ColumnMore.
const (
	columnHeader = 7
	columnBody   = 8

	ColumnSize = 9  // bytes of kind, header and body
	ColumnNow  = 10 // the database's time
	ColumnMore = 11
)

// Reader reads the rows of one statement. The zero Reader is ready to use.
type Reader struct {
	Arena *Arena // memory for headers and bodies
	kinds map[string]string
}

// Read reads the current row into r. It reports whether the statement returned the header and the body: a large one
// is left for a second statement, see Large.
func (d *Reader) Read(row pg.Row, r *Row) (whole bool) {
	r.Due, r.ID, r.Sent, r.FirstFailed = row.Time(0), row.UUID(1), row.Time(2), row.Time(3)
	r.Attempt, r.Conflict, r.Kind = int(row.Int(4)), int(row.Int(5)), d.kind(row.Bytes(6))
	if row.Null(columnHeader) || row.Null(columnBody) {
		return false
	}
	r.Header, r.Body = d.Arena.Keep(row.Bytes(columnHeader)), d.Arena.Keep(row.Bytes(columnBody))
	return true
}

// kind returns one string for equal kinds: a batch has many messages and few kinds.
func (d *Reader) kind(b []byte) string {
	if s, ok := d.kinds[string(b)]; ok {
		return s
	}
	if d.kinds == nil {
		d.kinds = map[string]string{}
	}
	s := string(b)
	d.kinds[s] = s
	return s
}

// SmallUpTo returns the size above which a statement that reads up to that number of messages leaves out a header or
// a body, so that all others together have no more than bytes.
func SmallUpTo(bytes, messages int) int { return bytes / max(1, 2*messages) }

// Large are rows whose headers and bodies a statement has left out.
type Large []*Row

// Queue queues the statement that reads them. It removes each row that it finds from l.
func (l *Large) Queue(pipeline *pgx.Batch, q *Queue, a *Arena) {
	dues, ids := pg.Timestamps(), pg.UUIDs()
	for _, r := range *l {
		dues.Time(r.Due)
		ids.UUID(r.ID)
	}
	pipeline.Queue(q.SQL("read_large"), dues, ids).Query(func(rows pgx.Rows) error {
		found := make([]bool, len(*l))
		for rows.Next() {
			row := pg.CurrentRow(rows)
			at := row.Int(0)
			found[at] = true
			(*l)[at].Header, (*l)[at].Body = a.Keep(row.Bytes(1)), a.Keep(row.Bytes(2))
		}
		var gone Large
		for n, r := range *l {
			if !found[n] {
				gone = append(gone, r)
			}
		}
		*l = gone
		return rows.Err()
	})
}

// Arena is memory for headers and small bodies, which are copied out of rows. The zero Arena is ready to use.
type Arena struct{ memory []byte }

const arenaSize = 64 << 10 // a larger value gets memory of its own

// Keep copies a value that is only valid until the next row is read.
func (a *Arena) Keep(value []byte) []byte {
	if cap(a.memory) == 0 {
		a.memory = make([]byte, 0, arenaSize)
	}
	begin := len(a.memory)
	if begin+len(value) > cap(a.memory) {
		return append(make([]byte, 0, len(value)), value...)
	}
	a.memory = append(a.memory, value...)
	return a.memory[begin:len(a.memory):len(a.memory)]
}

// Reset makes the memory ready for other values. Values kept before must not be used any more.
func (a *Arena) Reset() { a.memory = a.memory[:0] }
