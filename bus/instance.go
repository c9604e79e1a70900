package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/engine/watch"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
)

// InstanceStatus is the state of the instance that a watch follows.
type InstanceStatus uint8

// The states of an instance.
const (
	InstanceAbsent   InstanceStatus = iota // it has not started, or it had ended before the watch began
	InstanceLiving                         // there is an instance
	InstanceComplete                       // the instance that the watch followed has ended, or is remembered
)

func (s InstanceStatus) String() string { return [...]string{"absent", "living", "complete"}[s] }

// WatchEvent is a value that a watch yields. If Status is InstanceComplete, Instance is the last version that the watch
// read. The state after the last step is deleted with the instance, unless saga.Options.Remember keeps it: write values
// that must outlive it to a table or an event.
type WatchEvent struct {
	Status   InstanceStatus
	Instance saga.Instance

	def *saga.Definition
}

// Into decodes the state into a pointer to the state type of the saga, and upgrades it to the current version.
// saga.States.Decode of Instance does the same with types.
//
// Errors: saga.ErrState and saga.ErrNewerState for a state that this program cannot read; an error if state has the
// wrong type, or if the watch has read no state.
func (s WatchEvent) Into(state any) error {
	if s.def == nil || s.Instance.State == nil {
		return fmt.Errorf("read saga %s/%s: it is %v, and the watch has not read its state", s.Instance.Saga,
			s.Instance.Key, s.Status)
	}
	if err := persistence.CheckInto(s.def, state); err != nil {
		return err
	}
	return persistence.ReadState(s.def, s.Instance, state)
}

// Cursor returns the cursor of the version in s.
func (s WatchEvent) Cursor() WatchCursor {
	return WatchCursor{ID: s.Instance.ID, Version: s.Instance.Version}
}

// WatchCursor names a version of an instance. As text it can be the id of a server-sent event.
type WatchCursor struct {
	ID      saga.ID
	Version int64
}

// String returns "" for the zero WatchCursor.
func (c WatchCursor) String() string {
	if c == (WatchCursor{}) {
		return ""
	}
	return c.ID.String() + "." + strconv.FormatInt(c.Version, 10)
}

var errCursor = errors.New("want text that WatchCursor.String returned")

// ParseWatchCursor is the inverse of WatchCursor.String. It returns an error for any other text.
func ParseWatchCursor(text string) (c WatchCursor, err error) {
	if text == "" {
		return WatchCursor{}, nil
	}
	id, version, _ := strings.Cut(text, ".")
	if c.ID, err = saga.ParseID(id); err == nil {
		c.Version, err = strconv.ParseInt(version, 10, 64)
	}
	if err != nil || c.Version < 0 || c.ID.IsZero() {
		return WatchCursor{}, fmt.Errorf("cursor of %d bytes: %w", len(text), errCursor)
	}
	return c, nil
}

// Watch follows the instance of d with this key. It yields the current version, or the first version newer than after,
// and then each newer version, until the instance is InstanceComplete. A slow reader gets the newest version and not
// every one, and versions that follow each other closely are yielded as one. If the key has no instance, Watch yields
// InstanceAbsent once and waits.
//
//	for seen, err := range b.Watch(ctx, Orders, id, bus.WatchCursor{}) {
//
// after continues an earlier watch: it is the version that the reader already has. If that instance is over, the watch
// yields InstanceComplete, even when the key has a new instance. With the zero WatchCursor, Watch cannot distinguish an
// instance that is over from a key that was never used.
//
// All watches of a process share one query, which returns no rows while nothing changes. They yield commits of this
// process within milliseconds, and commits of other processes after 250 ms to a second. They need no endpoint and no
// LISTEN. While the database is away they wait.
//
// An error is the last value that Watch yields: the cause of ctx's end, a saga or key that cannot exist, or a missing
// schema or grant. Watch is safe for concurrent use.
func (b *Bus) Watch(
	ctx context.Context, d *saga.Definition, key string, after WatchCursor,
) iter.Seq2[WatchEvent, error] {
	return func(yield func(WatchEvent, error) bool) {
		if err := watchable(d, key); err != nil {
			yield(WatchEvent{}, err)
			return
		}
		v := b.watches.Join(ctx, d, key)
		defer v.Leave()
		v.Continue(after.ID, after.Version)
		for {
			view, err := v.Next(ctx)
			if err != nil {
				yield(WatchEvent{}, fmt.Errorf("watch saga %s/%s: %w", d.Name(), key, err))
				return
			}
			if !yield(seenOf(view, d), nil) || view.Complete {
				return
			}
		}
	}
}

func seenOf(v watch.View, d *saga.Definition) WatchEvent {
	seen := WatchEvent{Status: InstanceLiving, Instance: v.Instance, def: d}
	switch {
	case v.Complete:
		seen.Status = InstanceComplete
	case v.Instance.ID.IsZero():
		seen.Status = InstanceAbsent
	}
	return seen
}

var errWatchNil = errors.New("watch: the saga is nil")

// watchable refuses a key that Postgres would refuse: it would fail the query that all watches share.
func watchable(d *saga.Definition, key string) error {
	if d == nil {
		return errWatchNil
	}
	if key == "" || len(key) > persistence.MaxKey || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return fmt.Errorf("watch saga %s: a key of %d bytes: want 1 to %d, in UTF-8 and without NUL",
			d.Name(), len(key), persistence.MaxKey)
	}
	return nil
}

// consumes returns a function that reports whether messages for d come through a queue, according to the routes that
// this process has read.
func consumes(routes *queue.Router) func(queueID int, d *saga.Definition) bool {
	return func(queueID int, d *saga.Definition) bool {
		known := routes.Current()
		return known != nil && slices.ContainsFunc(d.Kinds(), func(k saga.KindInfo) bool {
			return slices.ContainsFunc(known.Kinds[k.Kind], func(q *queue.Queue) bool { return q.ID == queueID })
		})
	}
}

// noteChanges notifies the watches of this process of the instances that a batch has changed.
func noteChanges(watches *watch.Set, messages []*message.Message) {
	if watches.Len() == 0 {
		return
	}
	var last *contention.Instance
	for _, m := range messages {
		if m.Fate == message.FateDone && m.Instance != nil && m.Instance != last {
			last = m.Instance
			watches.Changed(last.Name())
		}
	}
}

// Instance reads the live instance of d with this key, and decodes its state into into, a pointer to the state type
// of d; nil reads no state. ok is false if there is no instance, or if it has completed. Instance neither locks nor
// waits, and the answer may be out of date when it arrives. A state of an older version is upgraded first.
// saga.States.Read does the same with types. Instance is safe for concurrent use.
//
// Errors: saga.ErrState and saga.ErrNewerState for a state that this program cannot read; i is valid then.
func (b *Bus) Instance(ctx context.Context, d *saga.Definition, key string, into any) (i saga.Instance, ok bool,
	err error) {
	if err := persistence.CheckInto(d, into); err != nil {
		return saga.Instance{}, false, err
	}
	i, ok, err = b.tables.sagas.Read(ctx, b.pool, d.Name(), key)
	if ok && !i.RememberedUntil().IsZero() {
		return saga.Instance{}, false, err
	}
	if err != nil || !ok || into == nil {
		return i, ok, err
	}
	return i, true, persistence.ReadState(d, i, into)
}
