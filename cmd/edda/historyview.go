package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
	"github.com/edda-go/edda/saga"
)

func lifeOf(l history.Life) object {
	return object{"instance", l.ID, "saga", l.Saga, "key", l.Key, "began", jsonTime(l.Began), "ended",
		jsonTime(l.Ended), "outcome", string(l.Outcome)}
}

func lifeText(l history.Life) string {
	if l.Ended.IsZero() {
		return fmt.Sprintf("%s %s, which lives since %s", l.Saga, l.Key, moment(l.Began))
	}
	return fmt.Sprintf("%s %s, which lived from %s to %s, %s", l.Saga, l.Key, moment(l.Began), moment(l.Ended),
		l.Outcome)
}

// sentOf is a message as the history knows it.
func sentOf(m history.Message, bodies bool) object {
	o := object{"id", m.ID, "kind", m.Kind, "intent", m.Intent.String(), "from", m.From, "to", m.To, "conversation",
		m.Conversation, "related_to", jsonID(m.RelatedTo), "sent", jsonTime(m.Sent), "due", jsonTime(m.Due),
		"manifest", m.Manifest, "run", jsonID(m.Run), "size", m.Size}
	if bodies && m.Body != nil {
		o = append(o, bodyOf(m.Body)...)
	}
	return o
}

func entryOf(e history.Entry, bodies bool) object {
	out := []object{}
	for _, m := range e.Sent {
		out = append(out, sentOf(m, bodies))
	}
	return object{"at", e.At, "endpoint", e.Endpoint, "host", e.Host, "page", e.Page, "fate", e.Fate.String(),
		"attempt", e.Info.Attempt, "took_seconds", e.Took.Seconds(), "error", e.Error, "reason", e.Reason,
		"saga", e.Saga, "key", e.Key, "instance", jsonID(e.Instance), "version", e.Version,
		"message", sentOf(e.Info, bodies), "out", out, "cancelled", append([]saga.ID{}, e.Cancelled...)}
}

func stateOf(v history.Version) object {
	o := object{"version", v.Version, "change", v.Change.String(), "at", v.At, "page", v.Page}
	if json.Valid(v.State) {
		return append(o, "state", json.RawMessage(v.State))
	}
	return append(o, "state", nil)
}

func versionOf(v history.Version) object {
	messages := []object{}
	for _, e := range v.Entries {
		messages = append(messages, entryOf(e, false))
	}
	return append(stateOf(v), "diff", stateDiff(v), "messages", messages)
}

// stateDiff is what became of the state, "" if that is not kept.
func stateDiff(v history.Version) string {
	if v.State == nil {
		return ""
	}
	return history.Diff(v.Before, v.State)
}

func shownLife(lives []history.Life, of history.Life, versions []history.Version, next saga.ID) result {
	all := []object{}
	for _, l := range lives {
		all = append(all, lifeOf(l))
	}
	value := object{"life", lifeOf(of), "lives", all, "timeline", timelineOf(versions), "next", idText(next)}
	return result{value: value, page: func(p *page) {
		p.line("%s", lifeText(of))
		p.line("instance %s", of.ID)
		showTimeline(p, versions)
		if !next.IsZero() {
			p.line("There may be more: --before %s", next)
		}
		for _, l := range lives {
			if l.ID != of.ID {
				p.line("another life: %s; --life %s", lifeText(l), l.ID)
			}
		}
	}}
}

func timelineOf(versions []history.Version) []object {
	timeline := []object{}
	for _, v := range versions {
		timeline = append(timeline, versionOf(v))
	}
	return timeline
}

func showTimeline(p *page, versions []history.Version) {
	if len(versions) == 0 {
		p.line("Nothing is kept of what happened to it.")
		return
	}
	table := [][]string{{"VERSION", "TIME", "IN", "STATE", "OUT"}}
	for _, v := range versions {
		table = append(table, versionRows(v)...)
	}
	p.table(table)
}

// versionRows are the rows of one transaction: the messages in the order in which they were handled, and what each of
// them sent.
func versionRows(v history.Version) (rows [][]string) {
	number, state := strconv.FormatInt(v.Version, 10), shortened(stateDiff(v), 100)
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
	}
	for n, e := range v.Entries {
		outs := outTexts(e)
		for m := range max(1, len(outs)) {
			row := []string{" ", " ", " ", " ", " "}
			if n == 0 && m == 0 {
				row[0], row[1], row[3] = number, moment(v.At), state
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

// entryText is a message that came in, and how it ended if that was not well.
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
		text += ": " + shortened(why, 60)
	}
	return text
}

// outTexts are what a message sent. Several of one kind are one text.
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

func placeOf(p whereabouts.Place) object {
	var letter *int64
	if p.Letter > 0 {
		letter = &p.Letter
	}
	return object{"state", string(p.State), "endpoint", p.Endpoint, "relay", p.Relay, "says", p.Says(), "at",
		jsonTime(p.At), "until", jsonTime(p.Until), "attempt", p.Attempt, "before", p.Before, "key", p.Key, "process",
		p.Process, "letter", letter, "error", p.Error, "reason", p.Reason, "paused_at", jsonTime(p.PausedAt),
		"pause_reason", p.Pause, "idle", p.Idle}
}

func shownTrace(m whereabouts.Message, bodies bool) result {
	places, attempts := []object{}, []object{}
	for _, p := range m.Places {
		places = append(places, placeOf(p))
	}
	for _, e := range m.Attempts {
		attempts = append(attempts, entryOf(e, bodies))
	}
	value := object{"message", sentOf(m.Info, bodies), "places", places, "attempts", attempts}
	return result{value: value, page: func(p *page) {
		i := m.Info
		p.fields("message", m.ID.String(), "kind", i.Kind, "intent", i.Intent.String(), "from", i.From, "conversation",
			idText(i.Conversation), "because of message", idText(i.RelatedTo), "manifest", i.Manifest, "run",
			idText(i.Run), "sent", moment(i.Sent))
		for _, place := range m.Places {
			p.line("%s", place.Says())
		}
		if len(m.Attempts) > 0 {
			p.table(attemptRows(m.Attempts))
		}
		if bodies && i.Body != nil {
			p.line("body:")
			p.block(pretty(i.Body))
		}
	}}
}

func attemptRows(attempts []history.Entry) [][]string {
	table := [][]string{{"TIME", "ENDPOINT", "ATTEMPT", "FATE", "TOOK", "HOST", "ERROR", "OUT"}}
	for _, e := range attempts {
		table = append(table, []string{moment(e.At), e.Endpoint, strconv.Itoa(e.Info.Attempt), e.Fate.String(),
			took(e.Took), e.Host, shortened(cmp.Or(e.Error, e.Reason), 60),
			shortened(strings.Join(outTexts(e), ", "), 80)})
	}
	return table
}

// took is the time that a handler needed.
func took(d time.Duration) string {
	if d < time.Second {
		return d.Round(10 * time.Microsecond).String()
	}
	return span(d)
}

// nodeOf is a message with what its handlers sent.
func nodeOf(n *whereabouts.Node) object {
	places, effects := []object{}, []object{}
	for _, p := range n.Places {
		places = append(places, placeOf(p))
	}
	for _, g := range n.Effects {
		messages, states := []object{}, object{}
		for _, below := range g.Nodes {
			messages = append(messages, nodeOf(below))
		}
		for _, state := range slices.Sorted(maps.Keys(g.States)) {
			states = append(states, string(state), g.States[state])
		}
		effects = append(effects, object{"kind", g.Kind, "count", g.Count, "states", states, "folded", g.Folded,
			"messages", messages})
	}
	return object{"message", sentOf(n.Info, false), "attempts", len(n.Attempts), "places", places, "effects", effects}
}

func shownConversation(c whereabouts.Conversation) result {
	roots := []object{}
	for _, n := range c.Roots {
		roots = append(roots, nodeOf(n))
	}
	value := object{"count", c.Count, "more", c.More, "roots", roots}
	return result{value: value, page: func(p *page) {
		for _, n := range c.Roots {
			showNode(p, n, 0)
		}
		if c.More {
			p.line("There are more messages: --limit")
		}
	}}
}

// shapes of the states. A state has a word beside its shape.
var shapes = map[whereabouts.State]string{
	whereabouts.Waiting: "○", whereabouts.InHand: "◐", whereabouts.Handled: "✓", whereabouts.Dead: "✕",
	whereabouts.Delayed: "⏲", whereabouts.Retrying: "⏲", whereabouts.Parked: "○", whereabouts.Discarded: "⊘",
	whereabouts.Cancelled: "⊘", whereabouts.Relayed: "✓", whereabouts.Ingested: "✓",
}

// mostIndent is how many levels of a tree are set in. A deeper line names its level.
const mostIndent = 20

func showNode(p *page, n *whereabouts.Node, level int) {
	in := strings.Repeat("  ", min(level, mostIndent))
	if level > mostIndent {
		in += fmt.Sprintf("(level %d) ", level)
	}
	p.line("%s%s  %s", in, cmp.Or(n.Info.Kind, "(kind not known)"), n.ID)
	for _, place := range n.Places {
		p.line("%s  %s %s", in, cmp.Or(shapes[place.State], "?"), place.Says())
	}
	for _, g := range n.Effects {
		if g.Folded {
			var states []string
			for _, state := range slices.Sorted(maps.Keys(g.States)) {
				states = append(states, fmt.Sprintf("%d %s", g.States[state], state))
			}
			p.line("%s  %s ×%d: %s; some of them:", in, g.Kind, g.Count, strings.Join(states, ", "))
		}
		for _, below := range g.Nodes {
			showNode(p, below, level+1)
		}
	}
}
