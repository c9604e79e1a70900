package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/history/whereabouts"
)

// Trace shows the place of a message, why it is there, and its attempts.
func Trace(m whereabouts.Message, bodies bool) View {
	i := m.Info
	v := View{
		JSON: Object{"message", sentOf(i, bodies), "places", objects(m.Places, placeOf), "attempts",
			objects(m.Attempts, func(e history.Entry) Object { return entryOf(e, bodies) })},
		Parts: []Part{fields("message", m.ID.String(), "kind", i.Kind, "intent", i.Intent.String(), "from", i.From,
			"conversation", idText(i.Conversation), "because of message", idText(i.RelatedTo), "manifest", i.Manifest,
			"run", idText(i.Run), "sent", Moment(i.Sent))},
	}
	for _, place := range m.Places {
		v.Parts = append(v.Parts, Line(place.Says()))
	}
	if len(m.Attempts) > 0 {
		v.Parts = append(v.Parts, attempts(m.Attempts))
	}
	if bodies && i.Body != nil {
		v.Parts = append(v.Parts, Line("body:"), Block(Body(i.Body)))
	}
	return v
}

func attempts(all []history.Entry) Table {
	table := Table{Columns: []string{"TIME", "ENDPOINT", "ATTEMPT", "FATE", "TOOK", "HOST", "ERROR", "OUT"}}
	for _, e := range all {
		table.Rows = append(table.Rows, []string{Moment(e.At), e.Endpoint, strconv.Itoa(e.Info.Attempt),
			e.Fate.String(), took(e.Took), e.Host, Shortened(cmp.Or(e.Error, e.Reason), 60),
			Shortened(strings.Join(outTexts(e), ", "), 80)})
	}
	return table
}

func placeOf(p whereabouts.Place) Object {
	return Object{"state", string(p.State), "endpoint", p.Endpoint, "relay", p.Relay, "says", p.Says(), "at",
		timeOrNull(p.At), "until", timeOrNull(p.Until), "attempt", p.Attempt, "before", p.Before, "key", p.Key,
		"process", p.Process, "letter", numberOrNull(max(p.Letter, 0)), "error", p.Error, "reason", p.Reason,
		"paused_at", timeOrNull(p.Pause.Since), "paused_by", p.Pause.By, "pause_reason", p.Pause.Reason, "idle", p.Idle}
}

// Conversation shows the messages that a message has caused, as a tree.
func Conversation(c whereabouts.Conversation) View {
	v := View{JSON: Object{"count", c.Count, "more", c.More, "roots", objects(c.Roots, nodeOf)},
		Mermaid: conversationMermaid(c)}
	for _, n := range c.Roots {
		v.Parts = append(v.Parts, nodeLines(n, 0)...)
	}
	return v
}

// nodeOf returns a message with the messages that its handlers sent.
func nodeOf(n *whereabouts.Node) Object {
	effects := objects(n.Effects, func(g whereabouts.Group) Object {
		states := Object{}
		for _, state := range slices.Sorted(maps.Keys(g.States)) {
			states = append(states, string(state), g.States[state])
		}
		return Object{"kind", g.Kind, "count", g.Count, "states", states, "folded", g.Folded, "messages",
			objects(g.Nodes, nodeOf)}
	})
	return Object{"message", sentOf(n.Info, false), "attempts", len(n.Attempts), "places", objects(n.Places, placeOf),
		"effects", effects}
}

// shapes are the drawings of the states. A state has a word beside its shape.
var shapes = map[whereabouts.State]string{
	whereabouts.Waiting: "○", whereabouts.InHand: "◐", whereabouts.Handled: "✓", whereabouts.Dead: "✕",
	whereabouts.Delayed: "⏲", whereabouts.Retrying: "⏲", whereabouts.Parked: "○", whereabouts.Discarded: "⊘",
	whereabouts.Cancelled: "⊘", whereabouts.Relayed: "✓", whereabouts.Ingested: "✓",
}

// mostIndent is how many levels of a tree are indented. A deeper line names its level.
const mostIndent = 20

func nodeLines(n *whereabouts.Node, level int) (lines []Part) {
	in := strings.Repeat("  ", min(level, mostIndent))
	if level > mostIndent {
		in += fmt.Sprintf("(level %d) ", level)
	}
	lines = append(lines, linef("%s%s  %s", in, cmp.Or(n.Info.Kind, "(unknown kind)"), n.ID))
	for _, place := range n.Places {
		lines = append(lines, linef("%s  %s %s", in, cmp.Or(shapes[place.State], "?"), place.Says()))
	}
	for _, g := range n.Effects {
		if g.Folded {
			lines = append(lines, linef("%s  %s ×%d: %s; some of them:", in, g.Kind, g.Count, statesText(g)))
		}
		for _, below := range g.Nodes {
			lines = append(lines, nodeLines(below, level+1)...)
		}
	}
	return lines
}

// statesText counts the messages of a group in each state.
func statesText(g whereabouts.Group) string {
	var states []string
	for _, state := range slices.Sorted(maps.Keys(g.States)) {
		states = append(states, fmt.Sprintf("%d %s", g.States[state], state))
	}
	return strings.Join(states, ", ")
}
