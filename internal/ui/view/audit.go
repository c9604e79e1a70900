package view

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/edda-go/edda/operate"
)

// Audit returns a page of entries, the newest first. The page is full if it has limit entries.
func Audit(all []operate.AuditEntry, limit int) List {
	next := ""
	if len(all) >= limit {
		next = wide(all[len(all)-1].Number)
	}
	return listOf("entries", "NUMBER|AT|BY|VERB|TARGET|CHANGE|REASON", all, auditRow).before(next)
}

func auditRow(e operate.AuditEntry) Row {
	return Row{
		JSON: Object{"number", e.Number, "at", e.At, "by", e.By(), "actor", e.Actor, "role", e.Role, "from", e.From,
			"verb", e.Verb, "target", e.Target, "reason", e.Reason, "before", e.Before, "after", e.After},
		Cells: []string{wide(e.Number), Moment(e.At), e.By(), e.Verb, e.Target,
			Shortened(Change(e.Before, e.After), 60), Shortened(e.Reason, 60)},
	}
}

// Change describes which values have changed. It shows only that a time is set, and not the time.
func Change(before, after json.RawMessage) string {
	was, is := membersOf(before), membersOf(after)
	if after == nil {
		is = was
	}
	var told []string
	names := slices.Sorted(maps.Keys(is))
	for name := range was {
		if _, there := is[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		old, now := was[name], is[name]
		switch {
		case bytes.Equal(old, now) && after != nil || strings.HasSuffix(name, "_at"):
		case now == nil:
			told = append(told, name+" gone")
		case old == nil || after == nil:
			told = append(told, name+" "+plain(now))
		default:
			told = append(told, name+" "+plain(old)+" → "+plain(now))
		}
	}
	return strings.Join(told, ", ")
}

// membersOf returns the members of a JSON object, and no members of any other value.
func membersOf(text json.RawMessage) (members map[string]json.RawMessage) {
	_ = json.Unmarshal(text, &members)
	return members
}

// plain returns a JSON value without the quotes of a string.
func plain(value json.RawMessage) string {
	text := ""
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}
