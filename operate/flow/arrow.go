package flow

import (
	"cmp"
	"slices"
	"strconv"
)

// Sender returns the name of the place where the edge begins, for people.
func (e Edge) Sender() string {
	if e.From == "" && e.Seen == 0 {
		return "(not seen)"
	}
	return cmp.Or(e.From, "(outside)")
}

// Rate formats PerMinute with two significant digits and at most three decimals; it returns "" for 0.
func (e Edge) Rate() string {
	if e.PerMinute == 0 {
		return ""
	}
	digits := 0
	for least := 10.0; e.PerMinute < least && digits < 3; least /= 10 {
		digits++
	}
	return strconv.FormatFloat(e.PerMinute, 'f', digits, 64)
}

// Basis returns a sentence that describes the history behind the edges.
func (m *Map) Basis() string {
	if m.Messages == 0 {
		return "The history tells of no message, so nothing was seen to be sent: what is here is subscriptions."
	}
	const format = "2006-01-02 15:04:05 UTC"
	return "Seen in the newest transactions of the history, from " + m.Since.Format(format) + " until " +
		m.Until.Format(format) + ". An endpoint that keeps no history, or a sample of it, sends more than is seen."
}

// Arrow joins all edges that were observed from one endpoint, or from outside, to another.
type Arrow struct {
	From, To string
	Kinds    []string
	All      Edge // Seen and PerMinute of all edges together
}

// Arrows joins the observed edges between the same endpoints. They are in the order of From and To.
func (m *Map) Arrows() (all []Arrow) {
	for _, e := range m.Edges {
		if e.Seen == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(a Arrow) bool { return a.From == e.From && a.To == e.To })
		if at < 0 {
			at, all = len(all), append(all, Arrow{From: e.From, To: e.To})
		}
		a := &all[at]
		a.All.Seen, a.All.PerMinute = a.All.Seen+e.Seen, a.All.PerMinute+e.PerMinute
		if !slices.Contains(a.Kinds, e.Kind) {
			a.Kinds = append(a.Kinds, e.Kind)
		}
	}
	slices.SortFunc(all, func(a, b Arrow) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return all
}
