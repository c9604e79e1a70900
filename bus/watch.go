package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// Life says whether the instance that a watch follows is there.
type Life uint8

// The lives of an instance.
const (
	Absent   Life = iota // there is none: not yet, or not any more when the watch began
	Living               // there is one
	Complete             // the one that was followed is over
)

func (l Life) String() string { return [...]string{"absent", "living", "complete"}[l] }

// Seen is what a watch tells. When the instance is Complete it is as it was seen last: the state after its last step is
// gone with it, so what outlives an instance belongs into a table or an event of its own.
type Seen struct {
	Life     Life
	Instance saga.Instance

	def *saga.Definition
}

// Into reads the state into a pointer to the state type of the saga, brought up to today's version.
//
// Errors: saga.ErrState and saga.ErrNewerState for a state that this program cannot read.
func (s Seen) Into(state any) error {
	if s.def == nil || s.Instance.State == nil {
		return fmt.Errorf("read saga %s/%s: it is %v, and no state of it was seen", s.Instance.Saga, s.Instance.Key,
			s.Life)
	}
	return readState(s.def, s.Instance, state)
}

// Mark is the version that was seen.
func (s Seen) Mark() Mark { return Mark{ID: s.Instance.ID, Version: s.Instance.Version} }

// Mark is a version of an instance. As text it fits the id of a server-sent event.
type Mark struct {
	ID      saga.ID
	Version int64
}

// String is "" for no version at all.
func (m Mark) String() string {
	if m == (Mark{}) {
		return ""
	}
	return m.ID.String() + "." + strconv.FormatInt(m.Version, 10)
}

var errMark = errors.New("want what Mark.String has written")

// ParseMark reads what String has written.
func ParseMark(text string) (m Mark, err error) {
	if text == "" {
		return Mark{}, nil
	}
	id, version, _ := strings.Cut(text, ".")
	if m.ID, err = saga.ParseID(id); err == nil {
		m.Version, err = strconv.ParseInt(version, 10, 64)
	}
	if err != nil || m.Version < 0 || m.ID.IsZero() {
		return Mark{}, fmt.Errorf("mark of %d bytes: %w", len(text), errMark)
	}
	return m, nil
}

// Watch follows the instance of d with this key: it yields what is there now, or what is newer than after, and then
// each newer version, until the instance is Complete. A reader that is slow gets the newest version and not each, and
// versions that follow each other at once are seen as one. A key that has no instance is told once as Absent, and
// waited for.
//
//	for seen, err := range b.Watch(ctx, Orders, id, bus.Mark{}) {
//
// after continues an earlier watch: the version that the reader has already. If that instance is over the watch says
// Complete, be there another one or none; with the zero Mark nobody can tell an instance that is over from one that
// never was.
//
// Watchers cost the database one query for all of them, which returns nothing while nothing changes, whatever their
// number. They are told within milliseconds of what this process commits, and of other processes' commits after 250 ms
// to a second. They need no endpoint, and no LISTEN. While the database is away they wait.
//
// The error, which is the last thing yielded, is the cause of ctx's end; or that d or the key cannot be, or that the
// schema or a grant is missing.
func (b *Bus) Watch(ctx context.Context, d *saga.Definition, key string, after Mark) iter.Seq2[Seen, error] {
	return func(yield func(Seen, error) bool) {
		if err := watchable(d, key); err != nil {
			yield(Seen{}, err)
			return
		}
		v := b.watching.join(ctx, d, key)
		defer v.leave()
		v.seen.Instance = saga.Instance{ID: after.ID, Saga: d.Name(), Key: key, Version: after.Version}
		for {
			seen, err := v.next(ctx)
			if err != nil {
				yield(Seen{}, fmt.Errorf("watch saga %s/%s: %w", d.Name(), key, err))
				return
			}
			if !yield(seen, nil) || seen.Life == Complete {
				return
			}
		}
	}
}

var errWatchNil = errors.New("watch: the saga is nil")

// watchable keeps a key from the query of everybody that Postgres would refuse.
func watchable(d *saga.Definition, key string) error {
	if d == nil {
		return errWatchNil
	}
	if key == "" || len(key) > persistence.MaxKey || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return fmt.Errorf("watch saga %s: a key of %d bytes: want 1 to %d, in UTF-8 and without NUL", d.Name(),
			len(key), persistence.MaxKey)
	}
	return nil
}

// viewer is one watch. It belongs to its caller's goroutine.
type viewer struct {
	*topic
	def   *saga.Definition
	seen  Seen
	told  bool   // of an absent instance, once
	fresh uint64 // the first look that began after it joined
}

// next waits for something that is news to this viewer.
func (v *viewer) next(ctx context.Context) (Seen, error) {
	for {
		changed, news, err := v.news()
		if err != nil || news {
			return v.seen, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Seen{}, context.Cause(ctx)
		}
	}
}

// news compares the topic with what the viewer knows. Without news, changed is closed when it is worth another try.
func (v *viewer) news() (changed <-chan struct{}, news bool, err error) {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	now, known := v.now, v.seen.Instance
	switch {
	case v.looked < v.fresh:
	case v.err != nil:
		return nil, false, v.err
	case !known.ID.IsZero() && known.ID != now.ID:
		v.seen.Life, v.seen.def = Complete, v.def
		return nil, true, nil
	case now.ID.IsZero() && !v.told:
		v.told = true
		return nil, true, nil
	case now.Version > known.Version:
		v.seen = Seen{Life: Living, Instance: now, def: v.def}
		return nil, true, nil
	}
	return v.changed, false, nil
}
