package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/saga"
)

// Lives shows the ended lives of one saga, the newest first. limit is the history.EndedOf.Most of the read.
func Lives(ended []history.Life, limit int) List {
	next := ""
	if n := len(ended); n > 0 && n == limit {
		next = PlaceText(ended[n-1].Ended, ended[n-1].ID)
	}
	return listOf("lives", "KEY|INSTANCE|BEGAN|ENDED|OUTCOME", ended, func(l history.Life) Row {
		return Row{JSON: lifeOf(l), Cells: []string{l.Key, l.ID.String(), Moment(l.Began), Moment(l.Ended),
			string(l.Outcome)}}
	}).before(next)
}

func lifeOf(l history.Life) Object {
	return Object{"instance", l.ID, "saga", l.Saga, "key", l.Key, "began", timeOrNull(l.Began), "ended",
		timeOrNull(l.Ended), "outcome", string(l.Outcome)}
}

// LifeText names the instance of a life, and when it began and ended.
func LifeText(l history.Life) string {
	if l.Ended.IsZero() {
		return fmt.Sprintf("%s %s, which lives since %s", l.Saga, l.Key, Moment(l.Began))
	}
	return fmt.Sprintf("%s %s, which lived from %s to %s, %s", l.Saga, l.Key, Moment(l.Began), Moment(l.Ended),
		l.Outcome)
}

// Timeline shows one life of an instance with its versions; the object also names the other lives of its key. next
// begins the earlier versions.
func Timeline(of history.Life, lives []history.Life, versions []history.Version, next saga.ID) View {
	return View{
		JSON: Object{"life", lifeOf(of), "lives", objects(lives, lifeOf), "timeline", objects(versions, versionOf),
			"next", idText(next)},
		Parts: []Part{Line(LifeText(of)), linef("instance %s", of.ID), timeline(versions)},
	}
}

func versionOf(v history.Version) Object {
	return append(stateOf(v), "diff", stateDiff(v), "messages", objects(v.Entries, func(e history.Entry) Object {
		return entryOf(e, false)
	}))
}

func stateOf(v history.Version) Object {
	o := Object{"version", v.Version, "change", v.Change.String(), "at", v.At, "page", v.Page}
	if v.By != "" {
		o = append(o, "by", v.By)
	}
	if json.Valid(v.State) {
		return append(o, "state", json.RawMessage(v.State))
	}
	return append(o, "state", nil)
}

// stateDiff returns the change of the state, or "" if the state is not kept.
func stateDiff(v history.Version) string {
	if v.State == nil {
		return ""
	}
	return history.Diff(v.Before, v.State)
}

func entryOf(e history.Entry, bodies bool) Object {
	return Object{"at", e.At, "endpoint", e.Endpoint, "host", e.Host, "page", e.Page, "fate", e.Fate.String(),
		"attempt", e.Info.Attempt, "took_seconds", e.Took.Seconds(), "error", e.Error, "reason", e.Reason,
		"saga", e.Saga, "key", e.Key, "instance", idOrNull(e.Instance), "version", e.Version,
		"message", sentOf(e.Info, bodies),
		"out", objects(e.Sent, func(m history.Message) Object { return sentOf(m, bodies) }),
		"cancelled", append([]saga.ID{}, e.Cancelled...)}
}

// sentOf returns a message in the terms of the history.
func sentOf(m history.Message, bodies bool) Object {
	o := Object{"id", m.ID, "kind", m.Kind, "intent", m.Intent.String(), "from", m.From, "to", m.To, "conversation",
		m.Conversation, "related_to", idOrNull(m.RelatedTo), "sent", timeOrNull(m.Sent), "due", timeOrNull(m.Due),
		"manifest", m.Manifest, "run", idOrNull(m.Run), "size", m.Size}
	if bodies && m.Body != nil {
		o = append(o, bodyOf(m.Body)...)
	}
	return o
}

func timeline(versions []history.Version) Part {
	if len(versions) == 0 {
		return Line("The history has no entry of it.")
	}
	table := Table{Columns: []string{"VERSION", "TIME", "IN", "STATE", "OUT"}}
	for _, v := range versions {
		table.Rows = append(table.Rows, versionRows(v)...)
	}
	return table
}

// versionRows returns the rows of one transaction: the messages in the order of their handling, and the messages that
// each of them sent.
func versionRows(v history.Version) (rows [][]string) {
	number, state := wide(v.Version), Shortened(stateDiff(v), 100)
	switch v.Change {
	case history.Attempted:
		number, state = "", " "
	case history.Unchanged:
		state = "unchanged"
	case history.Began:
		state = strings.TrimSpace("began " + state)
	case history.Ended:
		state = strings.TrimSuffix("ended, "+state, ", ")
	case history.BeganAndEnded:
		state = strings.TrimSpace("began and ended " + state)
	case history.Repaired, history.Retimed, history.Stopped:
		state = strings.TrimSuffix(v.Change.String()+": "+state, ": ")
		return [][]string{{number, Moment(v.At), "by " + cmp.Or(v.By, "an operator"), state, " "}}
	}
	for n, e := range v.Entries {
		outs := outTexts(e)
		for m := range max(1, len(outs)) {
			row := []string{" ", " ", " ", " ", " "}
			if n == 0 && m == 0 {
				row[0], row[1], row[3] = number, Moment(v.At), state
			}
			if m == 0 {
				row[2] = entryText(e)
			}
			if m < len(outs) {
				row[4] = outs[m]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// entryText describes a message that came in, and how it ended if it was not handled.
func entryText(e history.Entry) string {
	text := e.Info.Kind
	if e.Info.From != "" {
		text += " from " + e.Info.From
	}
	if e.Fate == history.Handled {
		if e.Info.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", e.Info.Attempt)
		}
		return text
	}
	failed := map[history.Fate]string{history.Retried: "failed", history.Died: "dead", history.Discarded: "discarded"}
	text += fmt.Sprintf(", attempt %d %s", e.Info.Attempt, cmp.Or(failed[e.Fate], e.Fate.String()))
	if why := cmp.Or(e.Error, e.Reason); why != "" {
		text += ": " + Shortened(why, 60)
	}
	return text
}

// outTexts returns the messages that a message sent. Several of one kind are one text.
func outTexts(e history.Entry) (texts []string) {
	count := map[string]int{}
	for _, m := range e.Sent {
		text := m.Kind
		if m.To != "" {
			text += " to " + m.To
		}
		if m.Intent == saga.Event {
			text += " to all"
		}
		if !m.Due.IsZero() && m.Due.After(e.At) {
			text += " in " + span(m.Due.Sub(e.At).Round(time.Second))
		}
		if count[text]++; count[text] == 1 {
			texts = append(texts, text)
		}
	}
	for n, text := range texts {
		if count[text] > 1 {
			texts[n] += fmt.Sprintf(" ×%d", count[text])
		}
	}
	if n := len(e.Cancelled); n == 1 {
		texts = append(texts, "1 timeout cancelled")
	} else if n > 1 {
		texts = append(texts, fmt.Sprintf("%d timeouts cancelled", n))
	}
	return texts
}

// ExportedLife returns the first line of an exported life.
func ExportedLife(of history.Life) Object { return append(Object{"type", "life"}, lifeOf(of)...) }

// ExportedVersion returns the lines of one transaction in an exported life: its messages with their bodies, and the
// state after it if the transaction changed that.
func ExportedVersion(v history.Version) []Object {
	lines := objects(v.Entries, func(e history.Entry) Object {
		return append(Object{"type", "message"}, entryOf(e, true)...)
	})
	if v.Change == history.Attempted || v.Change == history.Unchanged {
		return lines
	}
	return append(lines, append(Object{"type", "state"}, stateOf(v)...))
}
