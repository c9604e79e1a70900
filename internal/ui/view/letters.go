package view

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/recoverability"
)

// Letters shows dead letters. limit is the recoverability.LetterFilter.Limit of the read.
func Letters(all []recoverability.Letter, limit int) List {
	const columns = "NUMBER|DIED|ENDPOINT|KIND|ATTEMPTS|REASON|ERROR"
	l := listOf("dead_letters", columns, all, func(l recoverability.Letter) Row {
		return Row{JSON: letterOf(l), Cells: []string{wide(l.Number), Moment(l.Died), l.Endpoint, l.Kind,
			strconv.Itoa(l.Attempts), Shortened(l.Reason, 24), Shortened(l.Error, 60)}}
	})
	next := int64(0) // 0 on the last page
	if n := len(all); n > 0 && n >= min(cmp.Or(max(limit, 0), deadletter.DefaultLimit), deadletter.MaxLimit) {
		next = all[n-1].Number
		l.Next = wide(next)
	}
	l.next = next
	return l
}

func letterOf(l recoverability.Letter) Object {
	o := Object{"number", l.Number, "died", l.Died, "endpoint", l.Endpoint, "message", l.MessageID, "kind", l.Kind,
		"attempts", l.Attempts, "conflicts", l.Conflicts, "reason", l.Reason, "error", l.Error, "group", l.Group,
		"sent", timeOrNull(l.Sent), "first_failed", timeOrNull(l.FirstFailed)}
	headers, err := l.Headers()
	named := map[string]string{}
	for _, h := range headers {
		named[h.Name] = h.Value
	}
	if o = append(o, "headers", named); err != nil {
		o = append(o, "header_error", err.Error())
	}
	return o
}

// Letter shows one dead letter: its error, its headers, and with body its body.
func Letter(l recoverability.Letter, body bool) View {
	v := View{JSON: append(letterOf(l), "size", len(l.Body)), Parts: []Part{
		fields("number", wide(l.Number), "endpoint", l.Endpoint, "kind", l.Kind, "message", l.MessageID.String(),
			"sent", Moment(l.Sent), "first failed", Moment(l.FirstFailed), "died", Moment(l.Died), "attempts",
			strconv.Itoa(l.Attempts), "conflicts", strconv.Itoa(l.Conflicts), "reason", l.Reason, "group", l.Group,
			"body", sizeOf(l.Body)),
		Line("error:"), Block(l.Error)}}
	headers, err := l.Headers()
	switch {
	case err != nil:
		v.Parts = append(v.Parts, Line("header, which is none:"), Block(l.Header))
	case len(headers) > 0:
		v.Parts = append(v.Parts, Line("headers:"))
		for _, h := range headers {
			v.Parts = append(v.Parts, linef("    %s: %s", h.Name, h.Value))
		}
	}
	if body {
		v.JSON = append(v.JSON, bodyOf(l.Body)...)
		v.Parts = append(v.Parts, Line("body:"), Block(Body(l.Body)))
	}
	return v
}

// LetterGroups shows groups of dead letters, the largest first. next begins the next page.
func LetterGroups(groups []recoverability.LetterGroup, next string) List {
	sorted := slices.SortedStableFunc(slices.Values(groups), func(a, b recoverability.LetterGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last))
	})
	return listOf("groups", "GROUP|COUNT|ENDPOINT|KIND|FIRST|LAST|EXAMPLE|REASON|ERROR|NOTE", sorted, letterGroupRow).
		before(next)
}

func letterGroupRow(g recoverability.LetterGroup) Row {
	count := wide(g.Count)
	if g.Capped {
		count += "+"
	}
	return Row{
		JSON: Object{"group", g.Name, "endpoint", g.Endpoint, "kind", g.Kind, "count", g.Count, "capped", g.Capped,
			"first", g.First, "last", g.Last, "example", g.Example, "reason", g.Reason, "error", g.Error,
			"note", noteOf(g.Note)},
		Cells: []string{g.Name, count, g.Endpoint, g.Kind, Moment(g.First), Moment(g.Last), wide(g.Example),
			Shortened(g.Reason, 24), Shortened(g.Error, 60), Shortened(g.Note.Text, 60)},
	}
}

// noteOf returns a note on a group, or null.
func noteOf(n recoverability.GroupNote) any {
	if n.Text == "" {
		return nil
	}
	return Object{"text", n.Text, "by", n.By, "at", n.At}
}
