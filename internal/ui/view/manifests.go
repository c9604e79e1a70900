package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/edda-go/edda/scheduler"
)

// Manifests shows a page of manifests. limit is the scheduler.ManifestFilter.Limit of the read.
func Manifests(all []scheduler.ManifestInfo, limit int) List {
	next := ""
	if n := len(all); n > 0 && n == limit {
		next = all[n-1].Name
	}
	return listOf("manifests", "MANIFEST|STATE|DUE|SCHEDULE|GROUP|OWNER|SUCCESSES|LAST SUCCESS", all,
		func(m scheduler.ManifestInfo) Row {
			return Row{JSON: manifestOf(m), Cells: []string{m.Name, string(m.State), Moment(m.Due),
				Shortened(m.Schedule, 50), m.Group.Name, m.Owner, wide(m.History.Successes),
				Moment(m.History.Succeeded)}}
		}).before(next)
}

func manifestOf(m scheduler.ManifestInfo) Object {
	timeout := numberOrNull(max(m.Attempts.Timeout, 0).Seconds()) // null means no timeout
	return Object{"manifest", m.Name, "owner", m.Owner, "state", m.State, "schedule", m.Schedule, "due",
		timeOrNull(m.Due), "group", m.Group.Name, "priority", m.Priority, "kind", m.Kind, "parent", m.Parent.Name,
		"version", m.Version, "definition", m.Definition, "overlap", m.Overlap, "retries", m.Attempts.Retries,
		"retry_delay_seconds", m.Attempts.RetryDelay.Seconds(), "retry_most_seconds",
		m.Attempts.MaxRetryDelay.Seconds(),
		"run_timeout_seconds", timeout, "stopped", m.Paused.Declared, "paused", timeOrNull(m.Paused.Since), "reason",
		m.Paused.Reason, "paused_by", m.Paused.By, "group_paused", timeOrNull(m.Group.Paused),
		"orphaned", timeOrNull(m.Orphaned), "run", idOrNull(m.Run.ID), "held", idOrNull(m.Held.ID), "successes",
		m.History.Successes, "fired", timeOrNull(m.History.Fired), "succeeded", timeOrNull(m.History.Succeeded),
		"created", m.History.Created.UTC(), "changed", m.History.Changed.UTC(), "waits", m.Waits()}
}

// Manifest shows one manifest, the reason why it waits, and with body its message.
func Manifest(m scheduler.ManifestInfo, body bool) View {
	v := View{JSON: append(manifestOf(m), "size", len(m.Body)), Parts: []Part{
		fields("manifest", m.Name, "owner", m.Owner, "state", string(m.State), "schedule", m.Schedule, "due",
			Moment(m.Due), "group", m.Group.Name, "priority", strconv.Itoa(m.Priority), "kind", m.Kind, "retries",
			fmt.Sprintf("%d, after %v up to %v", m.Attempts.Retries, m.Attempts.RetryDelay, m.Attempts.MaxRetryDelay),
			"timeout", span(m.Attempts.Timeout), "version", wide(m.Version), "changed", Moment(m.History.Changed),
			"successes", wide(m.History.Successes), "last fired", Moment(m.History.Fired), "last success",
			Moment(m.History.Succeeded), "open run", idText(m.Run.ID), "held by", idText(m.Held.ID))}}
	for _, reason := range m.Waits() {
		v.Parts = append(v.Parts, Line(reason))
	}
	if body {
		v.JSON = append(v.JSON, bodyOf(m.Body)...)
		v.Parts = append(v.Parts, Block(Body(m.Body)))
	}
	return v
}

// DueTimes shows the next due times of a manifest, in its own time zone.
func DueTimes(manifest string, times []time.Time) View {
	v := View{JSON: Object{"manifest", manifest, "times", append([]time.Time{}, times...)}}
	if len(times) == 0 {
		v.Parts = []Part{linef("%s has no due time: no clock decides it, or its last due time has passed.", manifest)}
	}
	for _, at := range times {
		v.Parts = append(v.Parts, Line(at.Format("Mon 2006-01-02 15:04:05 -07:00 MST")))
	}
	return v
}

// Backfilled shows the runs that a backfill has queued.
func Backfilled(done scheduler.Backfilled) View {
	return View{JSON: Object{"queued", done.Queued, "present", done.Present, "next", timeOrNull(done.Next)},
		Parts: []Part{linef("%s queued; %s one.", Many(done.Queued, "run is", "runs are"),
			Many(done.Present, "due time had", "due times had"))}}
}

// Changes shows the effects of a declaration before it is made.
func Changes(c scheduler.Changes) View {
	manifests := scheduler.GroupChanges{Created: c.Created, Changed: c.Changed, Orphaned: c.Orphaned,
		Unchanged: c.Unchanged}
	v := View{JSON: append(changesOf(manifests), "groups", changesOf(c.Groups))}
	v.Parts = append(changeLines("group", c.Groups), changeLines("manifest", manifests)...)
	v.Parts = append(v.Parts, linef("%d to create, %d to change, %d to orphan, %d as they are.", len(c.Created),
		len(c.Changed), len(c.Orphaned), len(c.Unchanged)))
	return v
}

func changesOf(c scheduler.GroupChanges) Object {
	changed := objects(c.Changed, func(change scheduler.Change) Object {
		return Object{"name", change.Name, "what", change.What}
	})
	return Object{"created", texts(c.Created), "changed", changed, "orphaned", texts(c.Orphaned), "unchanged",
		len(c.Unchanged)}
}

func changeLines(what string, c scheduler.GroupChanges) (lines []Part) {
	for _, name := range c.Created {
		lines = append(lines, linef("+ %s %s", what, name))
	}
	for _, change := range c.Changed {
		lines = append(lines, linef("~ %s %s: %s", what, change.Name, strings.Join(change.What, ", ")))
	}
	for _, name := range c.Orphaned {
		lines = append(lines, linef("- %s %s", what, name))
	}
	return lines
}

// ManifestGroups shows all groups of manifests.
func ManifestGroups(all []scheduler.GroupInfo) List {
	return listOf("groups", "GROUP|CAP|ACTIVE|QUEUED|MANIFESTS|PRIORITY|OWNER|PAUSED|REASON", all,
		func(g scheduler.GroupInfo) Row {
			return Row{JSON: manifestGroupOf(g), Cells: []string{g.Name, capOf(g), strconv.Itoa(g.Active),
				strconv.Itoa(g.Queued), strconv.Itoa(g.Manifests), strconv.Itoa(g.Priority), g.Owner, Moment(g.Paused),
				Shortened(g.Reason, 40)}}
		})
}

// ManifestGroup shows one group of manifests.
func ManifestGroup(g scheduler.GroupInfo) View {
	return View{JSON: manifestGroupOf(g), Parts: []Part{fields("group", g.Name, "cap", capOf(g), "active",
		strconv.Itoa(g.Active), "queued", strconv.Itoa(g.Queued), "manifests", strconv.Itoa(g.Manifests), "priority",
		strconv.Itoa(g.Priority), "owner", g.Owner, "paused", Moment(g.Paused), "paused by", g.PausedBy, "reason",
		g.Reason)}}
}

func manifestGroupOf(g scheduler.GroupInfo) Object { // a max of 0 means no cap
	return Object{"group", g.Name, "owner", g.Owner, "max", g.Max, "strict", g.Strict, "priority", g.Priority, "paused",
		timeOrNull(g.Paused), "reason", g.Reason, "paused_by", g.PausedBy, "manifests", g.Manifests, "queued",
		g.Queued, "active", g.Active}
}

func capOf(g scheduler.GroupInfo) string {
	switch {
	case g.Max == 0:
		return "none"
	case g.Strict:
		return strconv.Itoa(g.Max) + " strict"
	}
	return strconv.Itoa(g.Max)
}
