package outcome

import (
	"slices"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/engine/contention"
	"github.com/edda-go/edda/internal/engine/handlers"
	"github.com/edda-go/edda/internal/engine/message"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Historian writes the history of one transaction after the other. It belongs to one goroutine. All methods of a nil
// Historian do nothing.
type Historian struct {
	to      *message.Recipient
	page    *history.Page
	effects *Effects
	unkept  []*contention.Instance       // ended instances whose end is in no page
	entries map[*contention.Instance]int // the instances of the page, and their numbers in it
	faults  handlers.Faults              // of the function that redacts
	redact  handlers.Guest
}

// NewHistorian returns the historian of a worker, or nil if the endpoint keeps no history.
func NewHistorian(to *message.Recipient) *Historian {
	if to.History.Store == nil {
		return nil
	}
	return &Historian{
		to: to, page: to.History.NewPage(to.Name, to.NewID), entries: map[*contention.Instance]int{},
	}
}

// Begin begins the page of a transaction, whose time must be set.
func (h *Historian) Begin(of *Effects) {
	if h == nil {
		return
	}
	h.effects = of
	h.page.Begin(h.to.Keeps(), of.In.Now)
	clear(h.entries)
	clear(h.unkept)
	h.unkept = h.unkept[:0]
}

// Keeps reports whether the history records m if it is handled. It may be called before Begin.
func (h *Historian) Keeps(m *message.Message) bool {
	return h != nil && h.to.Keeps().Keeps(&m.Delivery.Info)
}

// NoteInstances marks the instances that the history is to record, before they are saved. change returns how the save
// changes an instance.
func (h *Historian) NoteInstances(change func(*contention.Instance) history.ChangeKind) {
	if h == nil || !h.page.On() {
		return
	}
	for _, m := range h.effects.In.Messages {
		i := m.Instance
		if m.Fate == message.FateDone && i != nil && i.Session != nil && i.Change == 0 &&
			h.page.Keeps(&m.Delivery.Info) {
			i.Record(change(i))
		}
	}
	for _, m := range h.effects.In.Messages { // an end that is not kept leads to the versions that are
		i := m.Instance
		if m.Fate == message.FateDone && i != nil && i.Session != nil && i.Change == 0 && i.Ended &&
			!i.Row.Page.IsZero() {
			h.unkept = append(h.unkept, i)
		}
	}
}

// PageID returns the id of the page for the row of an instance, or zero if the history does not record the instance.
func (h *Historian) PageID(i *contention.Instance) saga.ID {
	if i.Change == 0 {
		return saga.ID{}
	}
	return h.page.ID()
}

// Queue queues the page of the transaction. It is called after the fates of all messages are decided.
func (h *Historian) Queue(pipeline *pgx.Batch) {
	if h == nil || !h.page.On() {
		return
	}
	in := h.effects.In
	for _, a := range in.Retried {
		if a.Of.Fate != message.FateLeft && !a.Of.Conflicted { // a step that lost to a conflict has no effect
			h.page.Add(&history.Attempt{
				Info: &a.Info, Fate: history.Retried, Instance: loaded(a.Of), Took: a.Took,
				Err: deadletter.ErrorText(a.Err), Body: h.body(a.Of),
			})
		}
	}
	for _, m := range in.Messages {
		h.add(m)
	}
	for n, i := range h.unkept {
		if !slices.Contains(h.unkept[:n], i) && i.Won {
			name, key := i.Name()
			h.page.AddEnd(i.ID, name, key, i.Row.Page)
		}
	}
	h.page.Queue(pipeline)
}

// add adds a message to the page. Failures are kept regardless of sampling.
func (h *Historian) add(m *message.Message) {
	fate, kept := h.fateOf(m)
	if !kept {
		return
	}
	change, instance, text := 0, saga.ID{}, ""
	if fate == history.Handled {
		change = h.entry(m.Instance)
	}
	if change == 0 {
		instance = loaded(m)
	}
	if m.Err != nil {
		text = deadletter.ErrorText(m.Err)
	}
	h.page.Add(&history.Attempt{
		Info: &m.Delivery.Info, Took: m.Step.Took, Reason: m.Reason, Cancelled: m.Step.Gone, Fate: fate, Change: change,
		Instance: instance, Err: text, Body: h.body(m), Sent: h.sent(m),
	})
}

// fateOf returns the fate of m in the history, and whether the history records it.
func (h *Historian) fateOf(m *message.Message) (f history.Fate, kept bool) {
	switch m.Fate {
	case message.FateDone:
		return history.Handled, h.page.Keeps(&m.Delivery.Info)
	case message.FateAgain: // if the numbers differ, it waits, or was not decided: no attempt has failed
		return history.Retried, m.Delivery.Info.Attempt == m.Attempt
	case message.FateDead:
		return history.Died, true
	case message.FateDropped:
		return history.Discarded, true
	}
	return 0, false
}

// entry adds an instance to the page, once, and returns its number there, or 0 if the history does not record it.
func (h *Historian) entry(i *contention.Instance) int {
	if i == nil || i.Change == 0 {
		return 0
	}
	if n, ok := h.entries[i]; ok {
		return n
	}
	in, err := i.Session.Instance()
	if err != nil {
		return 0
	}
	change := history.Change{
		ID: in.ID, Saga: in.Saga, Key: in.Key, Version: in.Version, Kind: i.Change, Previous: i.Row.Page,
	}
	if i.Change != history.Unchanged {
		change.Version++
	}
	if h.page.KeepsState(i.Change) {
		of := i.Def.StateType()
		change.State = h.public(in.Saga, of, in.State)
		if h.page.ComparesState(&change) {
			change.Before = h.public(in.Saga, of, i.Before)
		}
	}
	n := h.page.AddChange(&change)
	h.entries[i] = n
	return n
}

// loaded returns the id of the instance that was loaded for m, or that begins in its batch, or zero.
func loaded(m *message.Message) saga.ID {
	if m.Instance == nil || m.Instance.Version == 0 && m.Instance.Change == 0 {
		return saga.ID{}
	}
	return m.Instance.ID
}
