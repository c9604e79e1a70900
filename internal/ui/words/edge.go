package words

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/edda-go/edda/operate"
)

// Sender returns the name of the place where an edge begins.
func Sender(e operate.Edge) string {
	if e.From == "" && e.Seen == 0 {
		return "(not seen)"
	}
	return cmp.Or(e.From, "(outside)")
}

// Rate formats a number per minute with two significant digits and at most three decimals; it returns "" for 0.
func Rate(perMinute float64) string {
	if perMinute == 0 {
		return ""
	}
	digits := 0
	for least := 10.0; perMinute < least && digits < 3; least /= 10 {
		digits++
	}
	return strconv.FormatFloat(perMinute, 'f', digits, 64)
}

// Basis returns a sentence that describes the history behind the edges of a map.
func Basis(m *operate.Map) string {
	if m.Messages == 0 {
		return "The history has no message, so this map shows only subscriptions."
	}
	const format = "2006-01-02 15:04:05 UTC"
	return "Shown are the newest transactions of the history, from " + m.Since.Format(format) + " until " +
		m.Until.Format(format) + ". An endpoint without history, or with a sample, sends more than is shown."
}

// Arrow joins all edges that were observed from one endpoint, or from outside, to another.
type Arrow struct {
	From, To string
	Kinds    []string

	Seen      int64
	PerMinute float64
}

// Arrows joins the observed edges between the same endpoints. They are in the order of From and To.
func Arrows(m *operate.Map) (all []Arrow) {
	for _, e := range m.Edges {
		if e.Seen == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(a Arrow) bool { return a.From == e.From && a.To == e.To })
		if at < 0 {
			at, all = len(all), append(all, Arrow{From: e.From, To: e.To})
		}
		a := &all[at]
		a.Seen, a.PerMinute = a.Seen+e.Seen, a.PerMinute+e.PerMinute
		if !slices.Contains(a.Kinds, e.Kind) {
			a.Kinds = append(a.Kinds, e.Kind)
		}
	}
	slices.SortFunc(all, func(a, b Arrow) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return all
}

// FaultsOf returns the faults of an endpoint that concern a kind it sends or receives; "" is the endpoint as a whole.
func FaultsOf(m *operate.Map, endpoint, kind string) (says []string) {
	for _, f := range m.Faults {
		if f.Endpoint == endpoint && f.Kind == kind {
			says = append(says, f.Says)
		}
	}
	return says
}

// AllFaultsOf returns all faults of an endpoint.
func AllFaultsOf(m *operate.Map, endpoint string) (says []string) {
	for _, f := range m.Faults {
		if f.Endpoint == endpoint {
			says = append(says, f.Says)
		}
	}
	return says
}

// ByLimit groups holders by their limits, and keeps their order.
func ByLimit(all []operate.Holder) map[string][]operate.Holder {
	of := map[string][]operate.Holder{}
	for _, h := range all {
		of[h.Limit] = append(of[h.Limit], h)
	}
	return of
}
