package scheduler

import (
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// clockSlack is by how much the clocks of those who made the ids of runs may differ from the database's.
const clockSlack = 24 * time.Hour

// ids bound the pages of the index that are read, since an id begins with the time at which it was made.
func (f RunFilter) ids() (low, high saga.ID) {
	for n := range high {
		high[n] = 0xff
	}
	if !f.Since.IsZero() {
		low = idAt(f.Since.Add(-clockSlack))
	}
	if !f.Until.IsZero() {
		high = idAt(f.Until.Add(clockSlack))
	}
	if !f.After.IsZero() && slices.Compare(f.After[:], high[:]) <= 0 {
		high = before(f.After)
	}
	return low, high
}

// idAt is the lowest UUIDv7 of a moment.
func idAt(t time.Time) (id saga.ID) {
	for n, ms := 5, t.UnixMilli(); n >= 0; n, ms = n-1, ms>>8 {
		id[n] = byte(ms)
	}
	return id
}

func before(id saga.ID) saga.ID {
	for n := len(id) - 1; n >= 0; n-- {
		id[n]--
		if id[n] != 0xff {
			break
		}
	}
	return id
}
