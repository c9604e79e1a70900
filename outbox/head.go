package outbox

import (
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// head is the place in its queue where a relay begins to read. Deleted messages leave their entries in the index
// until a vacuum, and a read from the front passes over all of them: after 200,000 messages that takes longer than
// everything else. So reads begin at a mark.
//
// A mark must not hide a message that is due earlier but is committed later, or a message that follows from it would
// be relayed first. The writer of such a message had a transaction open when the mark was made. So a mark becomes
// valid once all transactions of that time have ended, and a later read has found nothing before the mark. A read
// from the front once a second finds messages with a due time in the past; only their order depends on the mark.
type head struct {
	mark  queue.Position // everything before it has been relayed; zero: no mark
	next  queue.Position // becomes the mark
	xmax  uint64         // next becomes the mark once no transaction before this one runs; 0: there is no next
	front time.Time
	whole bool // the present read begins at the front
}

const (
	frontEvery = time.Second            // between two reads from the front
	frontLeast = 100 * time.Millisecond // at least, if a read from the mark found nothing
	markSlack  = time.Second            // a mark is older than any row that a running statement may still write
)

// begin returns the first position of the next read.
func (h *head) begin(now time.Time) queue.Position {
	h.whole = h.mark == queue.Position{} || now.Sub(h.front) >= frontEvery
	if h.whole {
		h.front = now
		return queue.Position{}
	}
	return h.mark
}

// again returns the time to wait before a read from the front, after a read that found nothing; 0 if that was one.
func (h *head) again(now time.Time) time.Duration {
	if h.whole {
		return 0
	}
	return max(time.Microsecond, frontLeast-now.Sub(h.front))
}

// fromFront makes the next read begin at the front.
func (h *head) fromFront() { h.front = time.Time{} }

// looked records the result of a read: its first message, or zero, and the oldest transaction that was running before
// it.
func (h *head) looked(first queue.Position, xmin uint64) {
	none := first == queue.Position{}
	if !none && !first.After(h.mark) {
		h.mark = queue.Position{}
	}
	if h.xmax != 0 && xmin >= h.xmax && (none || first.After(h.next)) {
		h.mark, h.xmax = h.next, 0
	}
}

// finished records that everything up to last is gone, and the next transaction. now is by the database's clock.
func (h *head) finished(last queue.Position, xmax uint64, now time.Time) {
	if h.xmax == 0 && last.After(h.mark) && now.Sub(last.Due) > markSlack {
		h.next, h.xmax = last, xmax
	}
}

// snapshot returns a function that reads the result of the statement relay_snapshot.
func snapshot(xmin, xmax *uint64) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			row := pg.CurrentRow(rows)
			*xmin, *xmax = uint64(row.Int(0)), uint64(row.Int(1))
		}
		return rows.Err()
	}
}
