package limits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/jackc/pgx/v5"
)

// span is one run of a handler that held its slot.
type span struct {
	Slot         int
	Epoch        int64
	Worker       string
	Began, Ended time.Time
}

func (s span) String() string {
	return fmt.Sprintf("slot %d epoch %d of %s from %s to %s", s.Slot, s.Epoch, s.Worker,
		s.Began.Format(time.StampMicro), s.Ended.Format(time.StampMicro))
}

// change is one change of the limit. Until Asked the limit before was in force, from Done on this one, and between them
// either.
type change struct {
	Slots       int
	Asked, Done time.Time
}

func judgeLimits(ctx context.Context, l *lab.Lab) error {
	rows, _ := l.Pool.Query(ctx, sql.Get("spans"))
	spans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[span])
	if err != nil {
		return fmt.Errorf("read the runs: %w", err)
	}
	rows, _ = l.Pool.Query(ctx, sql.Get("changes"))
	changes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
	if err != nil {
		return fmt.Errorf("read the changes: %w", err)
	}
	l.Fact("workers", l.Workers)
	l.Fact("runs", len(spans))
	l.Fact("changes", len(changes))
	l.Expect(len(spans) > 0, "nothing ran", "no handler ran")
	findAbove(l, spans, changes)
	idle := unused(spans, changes)
	l.Fact("unused", idle)
	l.Expect(idle <= reuse, "unused", "fewer handlers than allowed ran for %v, and the most is %v", idle, reuse)
	if err := l.CheckEffects(ctx, l.Pool); err != nil {
		return err
	}
	return l.CheckAll(ctx, l.Pool, "check_stale", "check_twice", "check_starved")
}

// findAbove finds the runs that began while as many others ran as were allowed.
func findAbove(l *lab.Lab, spans []span, changes []change) {
	for i, s := range spans {
		beside := slices.DeleteFunc(slices.Clone(spans[:i]),
			func(other span) bool { return !other.Ended.After(s.Began) })
		if n := allowed(changes, s.Began); len(beside) >= n {
			l.Violate("above", "", "%v began as number %d of %d, beside %v", s, len(beside)+1, n, beside)
		}
	}
}

// allowed is the largest limit that may have been in force when a handler that began at t was granted its slot, which
// was a little earlier.
func allowed(changes []change, t time.Time) (n int) {
	const grantedBefore = 500 * time.Millisecond
	for i, c := range changes {
		last := i+1 == len(changes)
		if c.Asked.Before(t) && (last || changes[i+1].Done.After(t.Add(-grantedBefore))) {
			n = max(n, c.Slots)
		}
	}
	return n
}

// unused is the longest time in which fewer handlers ran than were allowed. It looks at the moments at which a handler
// began or ended, or a change was done, until the last change, which ends the breaking.
func unused(spans []span, changes []change) (longest time.Duration) {
	type moment struct {
		at    time.Time
		delta int
	}
	var moments []moment
	for _, s := range spans {
		moments = append(moments, moment{s.Began, 1}, moment{s.Ended, -1})
	}
	for _, c := range changes {
		moments = append(moments, moment{c.Done, 0})
	}
	slices.SortFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	running, end := 0, changes[len(changes)-1].Asked
	var since time.Time
	for _, m := range moments {
		if m.at.After(end) {
			break
		}
		running += m.delta
		switch few := running < least(changes, m.at); {
		case !few && !since.IsZero():
			longest, since = max(longest, m.at.Sub(since)), time.Time{}
		case few && since.IsZero():
			since = m.at
		}
	}
	if !since.IsZero() {
		longest = max(longest, end.Sub(since))
	}
	return longest
}

// least is the limit in force at t, the smaller one while it changes.
func least(changes []change, t time.Time) int {
	n := changes[0].Slots
	for i, c := range changes {
		if !c.Done.After(t) {
			n = c.Slots
		}
		if i > 0 && c.Asked.Before(t) && c.Done.After(t) {
			n = min(n, c.Slots)
		}
	}
	return n
}
