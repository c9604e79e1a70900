package outbox

import (
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/jackc/pgx/v5"
)

// head is the place in its queue where a relay looks. Deleted messages leave their entries in the index until a vacuum,
// and a look from the front reads all of them: after 200,000 messages that takes longer than everything else. So looks
// begin behind a mark.
//
// A mark must not hide a message that is due earlier but was committed later, or a message that follows from it would
// be relayed first. The writer of such a message had a transaction open when the mark was made. So a mark is valid once
// all transactions of that time have ended, and a look after that has found nothing before the mark. A message with a
// due time in the past is found by the look from the front that happens now and then; only its order depends on the
// mark.
type head struct {
	mark  queue.Position // everything before it has been relayed; zero: nothing is known
	next  queue.Position // becomes the mark
	xmax  uint64         // once no transaction before this one runs any more; 0: there is no next
	front time.Time
	whole bool // the present look begins at the front
}

const (
	frontEvery = time.Second            // from one look from the front to the next
	frontLeast = 100 * time.Millisecond // at least, if nothing was found behind the mark
	markSlack  = time.Second            // a mark is older than what any statement is still writing
)

// begin returns where the next look begins.
func (h *head) begin(now time.Time) queue.Position {
	h.whole = h.mark == queue.Position{} || now.Sub(h.front) >= frontEvery
	if h.whole {
		h.front = now
		return queue.Position{}
	}
	return h.mark
}

// again returns, after a look that found nothing, when to look from the front: 0 if that look did.
func (h *head) again(now time.Time) time.Duration {
	if h.whole {
		return 0
	}
	return max(time.Microsecond, frontLeast-now.Sub(h.front))
}

// fromFront makes the next look one from the front.
func (h *head) fromFront() { h.front = time.Time{} }

// looked records what a look has found: its first message, zero if there was none, and the oldest transaction that ran
// before it.
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

// snapshot reads the statement relay_snapshot.
func snapshot(xmin, xmax *uint64) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			row := pg.CurrentRow(rows)
			*xmin, *xmax = uint64(row.Int(0)), uint64(row.Int(1))
		}
		return rows.Err()
	}
}
