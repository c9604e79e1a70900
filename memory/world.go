package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/wire"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/store/queue"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
)

// world has all the data that a database would hold. mu guards the fields below it.
type world struct {
	router *queue.Router
	real   bool // time is real

	mu        sync.Mutex
	changed   chan struct{} // closed, and replaced, when anything changes
	clock     time.Time     // unused if time is real
	queues    map[string]*box
	sagas     instances
	held      map[contention.Handle]*hold // instances whose messages are being handled
	given     map[saga.ID]given           // messages with ids that callers chose
	prune     int                         // maximum length of given before old ids are deleted
	handlers  map[saga.ID]*handling       // by the runs of their messages
	letters   kept[recoverability.Letter]
	discarded kept[recoverability.Discarded]
	runners   []runner
	schedules []*Scheduler // running ones
}

// given is a message with an id that a caller chose.
type given struct {
	sum []byte
	at  time.Time
}

const (
	givenKept  = 7 * 24 * time.Hour // like the bus on Postgres
	pruneFirst = 10_000
)

// handling is a running handler whose message has a run.
type handling struct{ cancel context.CancelCauseFunc }

func (w *world) begin(start time.Time, routes map[string]string) {
	w.clock, w.real = start.Truncate(time.Microsecond).UTC(), start.IsZero()
	w.router = &queue.Router{}
	w.router.Set(&queue.Routes{Overrides: routes})
	w.changed = make(chan struct{})
	w.queues, w.held, w.given = map[string]*box{}, map[contention.Handle]*hold{}, map[saga.ID]given{}
	w.prune, w.handlers = pruneFirst, map[saga.ID]*handling{}
	w.sagas.begin()
}

// Now returns the time of the bus.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now()
}

func (w *world) now() time.Time {
	if w.real {
		return time.Now().UTC().Truncate(time.Microsecond)
	}
	return w.clock
}

// change runs the due work of the schedulers, cancels the handlers of runs that are over, and wakes all goroutines that
// wait for a change.
func (w *world) change() {
	for _, s := range w.schedules {
		s.cycle()
	}
	for id, h := range w.handlers {
		if !w.isOpen(id) {
			h.cancel(bus.ErrCancelled)
			delete(w.handlers, id)
		}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// subscribe creates the queue of an endpoint, and subscribes it to kinds.
func (w *world) subscribe(endpoint string, kinds []string) *box {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[endpoint]; q != nil {
		return q
	}
	old := w.router.Current()
	q := &box{queue: &queue.Queue{ID: len(w.queues) + 1, Endpoint: endpoint}, timers: map[saga.ID]*row{},
		lanes: map[string]*hold{}}
	fresh := &queue.Routes{
		Generation: old.Generation + 1, Endpoints: map[string]*queue.Queue{endpoint: q.queue},
		Kinds: map[string][]*queue.Queue{}, Overrides: old.Overrides,
	}
	for name, known := range w.queues {
		fresh.Endpoints[name] = known.queue
	}
	for kind, all := range old.Kinds {
		fresh.Kinds[kind] = all
	}
	for _, kind := range kinds {
		fresh.Kinds[kind] = append(slices.Clip(fresh.Kinds[kind]), q.queue)
	}
	w.queues[endpoint] = q
	w.router.Set(fresh)
	return q
}

// put puts a message that no handler has sent into its queues.
func (w *world) put(out saga.Outgoing) (saga.Sent, error) {
	to, err := w.targets(&out, nil)
	if err != nil {
		return saga.Sent{}, err
	}
	sent := saga.Sent{ID: out.Info.ID, Copies: len(to)}
	if out.GivenID {
		switch w.claim(&out) {
		case dedup.Duplicate:
			return saga.Sent{ID: out.Info.ID, Duplicate: true}, nil
		case dedup.Conflict:
			return saga.Sent{}, fmt.Errorf("send %s: message %s: %w", out.Info.Kind, out.Info.ID, bus.ErrIDConflict)
		}
	}
	w.deliver(&out, to)
	w.change()
	return sent, nil
}

// targets returns the queues of a message. own is the sender's queue.
func (w *world) targets(out *saga.Outgoing, own *box) ([]*queue.Queue, error) {
	known := w.router.Current()
	switch {
	case out.Info.Intent == saga.Event && out.To == "":
		all := known.Kinds[out.Info.Kind]
		if out.MustRoute && len(all) == 0 {
			return nil, message.NoSubscriber(out.Info.Kind, known)
		}
		return all, nil
	case out.Info.Intent == saga.Timer && out.To == "":
		return []*queue.Queue{own.queue}, nil
	}
	q, err := known.Command(out.Info.Kind, out.To)
	return []*queue.Queue{q}, err
}

// claim records an id that a caller chose, and reports whether it is new.
func (w *world) claim(out *saga.Outgoing) dedup.Outcome {
	sum, now := dedup.Sum(out.Info.Kind, out.To, out.Body), w.now()
	old, known := w.given[out.Info.ID]
	switch {
	case !known || now.Sub(old.at) > givenKept:
		w.given[out.Info.ID] = given{sum, now}
		if len(w.given) > w.prune {
			maps.DeleteFunc(w.given, func(_ saga.ID, g given) bool { return now.Sub(g.at) > givenKept })
			w.prune = max(pruneFirst, 2*len(w.given))
		}
		return dedup.Fresh
	case bytes.Equal(old.sum, sum):
		return dedup.Duplicate
	}
	return dedup.Conflict
}

// follow cancels a handler when its run ends, until the returned function is called.
func (w *world) follow(run *saga.Firing, cancel context.CancelCauseFunc) (end func()) {
	if run == nil {
		return func() {}
	}
	mine := &handling{cancel}
	w.locked(func() { w.handlers[run.Run] = mine })
	return func() {
		w.locked(func() {
			if w.handlers[run.Run] == mine {
				delete(w.handlers, run.Run)
			}
		})
	}
}

// deliver puts a message into queues.
func (w *world) deliver(out *saga.Outgoing, to []*queue.Queue) {
	now := w.now()
	due := out.Info.Due
	if due.IsZero() {
		due = now.Add(out.Delay)
	}
	header := wire.AppendHeader(nil, &out.Info)
	for _, q := range to {
		r := &row{Row: queue.Row{
			Due: due, ID: out.Info.ID, Sent: now, Kind: out.Info.Kind, Header: header, Body: out.Body,
		}}
		if out.Info.Intent == saga.Timer {
			w.queues[q.Endpoint].timers[r.ID] = r
		}
		w.queues[q.Endpoint].push(r)
	}
}

// putBack puts a dead letter into its queue.
func (w *world) putBack(l recoverability.Letter) {
	w.queues[l.Endpoint].push(&row{Row: queue.Row{
		Due: w.now(), ID: l.MessageID, Sent: w.now(), Kind: l.Kind, Header: l.Header, Body: l.Body,
	}})
	w.change()
}

// look returns the queues by name.
func (w *world) look() []Queue {
	all := make([]Queue, 0, len(w.queues))
	now := w.now()
	for name, q := range w.queues {
		one := Queue{Endpoint: name, InHand: q.inHand + q.waiting}
		if q.paused {
			one.Paused = cmp.Or(q.reason, "by an operator")
		}
		for _, r := range q.rows {
			if r.Due.After(now) {
				one.Delayed++
			} else {
				one.Ready++
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	return all
}

// mostKept is the maximum number of records that are returned.
const mostKept = 10_000

// kept has the newest of some records.
type kept[R any] struct {
	number  int64 // of the last
	records []R
}

// add adds the record that numbered makes with the next number.
func (k *kept[R]) add(numbered func(number int64) R) {
	k.number++
	if k.records = append(k.records, numbered(k.number)); len(k.records) > 2*mostKept {
		k.records = slices.Clone(k.records[len(k.records)-mostKept:])
	}
}

func (k *kept[R]) all() []R { return slices.Clone(k.records[max(0, len(k.records)-mostKept):]) }

// take removes and returns the first wanted record.
func (k *kept[R]) take(wanted func(R) bool) (r R, ok bool) {
	at := slices.IndexFunc(k.records, wanted)
	if at < 0 {
		return r, false
	}
	r = k.records[at]
	k.records = slices.Delete(k.records, at, at+1)
	return r, true
}
