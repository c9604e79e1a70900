package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/internal/ui/view"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/internal/ui/act"
	"github.com/edda-go/edda/saga"
)

// change is the effect of one transaction on an instance.
type change struct {
	Idle    time.Duration `json:"-"` // time before it, if that is long
	At      time.Time     `json:"at"`
	Version int64         `json:"version"`
	Change  string        `json:"change"`
	Page    saga.ID       `json:"page"`
	Diff    string        `json:"diff"`
	State   []byte        `json:"-"` // nil if it is not kept or not to be shown
	Cut     int           `json:"-"` // bytes of the state that are left out
	Kept    bool          `json:"-"` // a state is kept, even if it may not be shown
	In      []incoming    `json:"messages"`
}

// shownOfBatch is how many messages of a transaction are shown before the rest is folded.
const shownOfBatch = 4

// First returns the messages that are shown at once.
func (r change) First() []incoming {
	if len(r.In) <= shownOfBatch+1 {
		return r.In
	}
	return r.In[:shownOfBatch-1]
}

// Rest returns the folded messages.
func (r change) Rest() []incoming { return r.In[len(r.First()):] }

// Attempt reports whether there are only failed attempts.
func (r change) Attempt() bool { return r.Change == history.Attempted.String() }

// incoming is a message that came in.
type incoming struct {
	ID      saga.ID       `json:"id"`
	Kind    string        `json:"kind"`
	From    string        `json:"from"`
	Attempt int           `json:"attempt"`
	Fate    string        `json:"fate"`
	Took    time.Duration `json:"-"`
	After   time.Duration `json:"-"` // since it was sent, or due
	Error   string        `json:"error,omitempty"`
	Host    string        `json:"host"`
	Out     []outgoing    `json:"out"`
	Dropped int           `json:"cancelled_timeouts,omitempty"`
	Timeout bool          `json:"timeout,omitempty"`

	at time.Time
}

// Failed reports whether the attempt did.
func (i incoming) Failed() bool { return i.Fate != history.Handled.String() }

// Word returns the fate for people.
func (i incoming) Word() string {
	if i.Fate == history.Retried.String() {
		return fmt.Sprintf("attempt %d failed", i.Attempt)
	}
	return i.Fate
}

// outgoing is a message that was sent, or several of one kind.
type outgoing struct {
	ID    saga.ID   `json:"id"`
	Kind  string    `json:"kind"`
	To    string    `json:"to"`
	Event bool      `json:"event,omitempty"`
	Due   time.Time `json:"due,omitzero"` // of a timeout, or a delayed message
	State string    `json:"state"`
	Text  string    `json:"says"`
	At    time.Time `json:"at,omitzero"`              // when its fate was decided
	Back  int64     `json:"answered_by,omitempty"`    // the version in which its answer came in
	Count int       `json:"count,omitempty"`          // number of messages on one line
	Parts []share   `json:"states,omitempty"`         // of several: the number in each state
	Dead  int64     `json:"dead_letter,omitempty"`    // its number
	With  string    `json:"did_what_where,omitempty"` // its effect on a second instance

	named string // the endpoint that the sender named
}

// share is how many messages are in a state.
type share struct {
	State string `json:"state"`
	Count int    `json:"count"`
}

// builder builds the rows of a timeline.
type builder struct {
	source *Source
	ask    Ask
	found  map[saga.ID]*whereabouts.Message
	now    time.Time

	backs   map[saga.ID]int64 // versions in which answers came in, by the id of the question
	dropped map[saga.ID]bool  // timeouts that were cancelled
}

// idle is the shortest time without events that gets a line.
const idle = time.Minute

func (b *builder) rows(timeline []history.Version) []change {
	b.backs, b.dropped = map[saga.ID]int64{}, map[saga.ID]bool{}
	for _, v := range timeline {
		for _, e := range v.Entries {
			if !e.Info.RelatedTo.IsZero() && e.Version > 0 {
				b.backs[e.Info.RelatedTo] = e.Version
			}
			for _, id := range e.Cancelled {
				b.dropped[id] = true
			}
		}
	}
	rows := make([]change, 0, len(timeline))
	for n, v := range timeline {
		r := change{
			At: v.At, Version: v.Version, Change: v.Change.String(), Page: v.Page, Kept: v.State != nil,
			In: []incoming{},
		}
		if n > 0 {
			if pause := v.At.Sub(timeline[n-1].At); pause >= idle {
				r.Idle = pause
			}
		}
		r.Diff = b.diff(v.Saga, v.Before, v.State)
		if b.ask.Bodies {
			r.State, r.Cut = cut(b.source.State(v.Saga, v.State))
		}
		for _, e := range v.Entries {
			r.In = append(r.In, b.in(&e))
		}
		rows = append(rows, r)
	}
	return rows
}

// diff returns the difference of two states. Without the right to see states it returns the names of the fields.
func (b *builder) diff(name string, before, after []byte) string {
	if after == nil {
		return ""
	}
	if b.ask.Bodies && before == nil {
		return filled(b.source.State(name, after))
	}
	if b.ask.Bodies {
		return act.Diff(before, after, b.source.State(name, before), b.source.State(name, after))
	}
	return fieldsOf(before, after)
}

// filled returns a first state in one line: its fields that are not empty.
func filled(state []byte) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(state, &all) != nil {
		return history.Diff(nil, state)
	}
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value := string(all[name]); !strings.Contains(" null false 0 \"\" [] {} ", " "+value+" ") {
			parts = append(parts, name+": "+view.Shortened(value, mostOfValue))
		}
	}
	if len(parts) == 0 {
		return "{}"
	}
	return strings.Join(parts, ", ")
}

// mostOfValue is how many characters of a field are shown in a line.
const mostOfValue = 60

// fieldsOf returns the names of the fields that differ.
func fieldsOf(before, after []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(after, &b) != nil || before != nil && json.Unmarshal(before, &a) != nil {
		return ""
	}
	all := maps.Clone(b)
	maps.Copy(all, a)
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(a[name], b[name]) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func (b *builder) in(e *history.Entry) incoming {
	i := incoming{
		ID: e.Info.ID, Kind: e.Info.Kind, From: e.Info.From, Attempt: e.Info.Attempt, Fate: e.Fate.String(),
		Took: e.Took, Error: cmp.Or(e.Error, e.Reason), Host: e.Host,
		Out: []outgoing{}, Dropped: len(e.Cancelled), at: e.At,
		Timeout: e.Info.Intent == saga.Timer,
	}
	if due := e.Info.Due; !due.IsZero() && due.After(e.Info.Sent) {
		i.After = e.At.Sub(due)
	} else if !e.Info.Sent.IsZero() {
		i.After = e.At.Sub(e.Info.Sent)
	}
	i.After = max(i.After, 0)
	for _, m := range e.Sent {
		i.Out = append(i.Out, b.out(e, &m))
	}
	i.Out = folded(i.Out)
	return i
}

func (b *builder) out(by *history.Entry, m *history.Message) outgoing {
	o := outgoing{
		ID: m.ID, Kind: m.Kind, To: m.To, Event: m.Intent == saga.Event, Back: b.backs[m.ID], named: m.To,
	}
	if m.Due.After(by.At.Add(time.Second)) {
		o.Due = m.Due
	}
	found := b.found[m.ID]
	if found == nil {
		o.State = "unknown"
		return o
	}
	p := worst(found.Places)
	o.State, o.Text, o.Dead = string(p.State), p.Says(), p.Letter
	switch {
	case p.State == whereabouts.Unknown && (p.Unread == "" || b.dropped[m.ID]):
		o.State, o.Text = b.lost(m)
	case p.State == whereabouts.Delayed && !o.Due.IsZero():
		o.Due = p.At // an operator may have moved the timeout
	case !p.State.Open():
		o.At = p.At
	}
	if o.To == "" && !o.Event {
		o.To = p.Endpoint
	}
	return o
}

// lost describes a message that was not found anywhere.
func (b *builder) lost(m *history.Message) (state, text string) {
	if b.dropped[m.ID] {
		return "cancelled", "Its saga has cancelled it."
	}
	if m.Intent == saga.Timer {
		return "cancelled", "It is in no queue: its saga has cancelled it, or the instance has ended."
	}
	return "gone", "It is in no queue, and the history has no entry of it."
}

// severity orders states: of a message in several endpoints the worst state is shown.
var severity = map[whereabouts.State]int{
	whereabouts.Dead: 9, whereabouts.Retrying: 8, whereabouts.Waiting: 7, whereabouts.Parked: 6, whereabouts.InHand: 5,
	whereabouts.Delayed: 4, whereabouts.Gone: 3, whereabouts.Discarded: 2, whereabouts.Unknown: 0,
}

func worst(places []whereabouts.Place) *whereabouts.Place {
	at := 0
	for n := range places {
		if severity[places[n].State] > severity[places[at].State] {
			at = n
		}
	}
	return &places[at]
}

// foldAbove: more messages of one kind and one sender than this share a line.
const foldAbove = 3

// folded combines messages of one kind if there are many.
func folded(all []outgoing) []outgoing {
	count := map[string]int{}
	for _, o := range all {
		count[o.Kind+" "+o.named]++
	}
	out, at := []outgoing{}, map[string]int{}
	for _, o := range all {
		group := o.Kind + " " + o.named
		if count[group] <= foldAbove {
			out = append(out, o)
			continue
		}
		if _, ok := at[group]; !ok {
			at[group] = len(out)
			out = append(out, outgoing{ID: o.ID, Kind: o.Kind, To: o.To, Event: o.Event, Count: count[group]})
		}
		out[at[group]].add(o.State)
	}
	return out
}

func (o *outgoing) add(state string) {
	for n := range o.Parts {
		if o.Parts[n].State == state {
			o.Parts[n].Count++
			return
		}
	}
	o.Parts = append(o.Parts, share{state, 1})
}

// waits returns the messages without a fate, or with a bad one: sent messages, and failed incoming ones.
func (b *builder) waits(timeline []history.Version) []wait {
	all, seen := []wait{}, map[saga.ID]bool{}
	add := func(id saga.ID, kind string) {
		m := b.found[id]
		if m == nil || seen[id] {
			return
		}
		seen[id] = true
		if p := worst(m.Places); p.State.Open() || p.State == whereabouts.Dead {
			all = append(all, wait{State: string(p.State), Kind: kind, ID: id, Text: p.Says()})
		}
	}
	for _, v := range timeline {
		for _, e := range v.Entries {
			if e.Fate != history.Handled {
				add(e.Info.ID, e.Info.Kind)
			}
			for _, m := range e.Sent {
				if m.Intent != saga.Timer {
					add(m.ID, m.Kind)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wait) int {
		return cmp.Compare(severity[whereabouts.State(b.State)], severity[whereabouts.State(a.State)])
	})
	return all
}

// compare returns the difference of two versions of a timeline.
func (b *builder) compare(timeline []history.Version, from, to string) (*compared, error) {
	if from == "" || to == "" {
		return nil, nil //nolint:nilnil // there is nothing to compare
	}
	first, errFirst := strconv.ParseInt(from, 10, 64)
	last, errLast := strconv.ParseInt(to, 10, 64)
	if errFirst != nil || errLast != nil {
		return nil, wrong("Enter numbers of versions.")
	}
	states, name := map[int64][]byte{}, ""
	for _, v := range timeline {
		if v.State != nil {
			states[v.Version], name = v.State, v.Saga
		}
	}
	if states[first] == nil || states[last] == nil {
		return nil, missing(fmt.Sprintf("This page does not have the states of both versions, %d and %d.", first,
			last))
	}
	return &compared{From: first, To: last,
		Diff: cmp.Or(b.diff(name, states[first], states[last]), "no difference")}, nil
}

// Says returns a wait as one sentence, for a list.
func (w wait) Says() string { return view.Escape(w.Text) }
