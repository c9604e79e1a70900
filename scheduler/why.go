package scheduler

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/base/plan"
)

// Waits returns sentences that explain why the manifest does not fire now. Reasons that need an operator come first.
// A live manifest that is not due yet gets one sentence, with the due time.
func (m ManifestInfo) Waits() (reasons []string) {
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if m.read.fault != "" {
		add("Its definition cannot be read: %s.", m.read.fault)
	}
	if !m.Orphaned.IsZero() {
		add("It is an orphan since %s: no running program of %q declares it, or it was removed. It comes back with a "+
			"program that starts and declares it.", stamp(m.Orphaned), m.Owner)
	}
	if m.Paused.Declared {
		add("Its declaration has Paused set.")
	}
	if !m.Paused.Since.IsZero() {
		add("It is paused since %s%s%s.", stamp(m.Paused.Since), by(m.Paused.By), because(m.Paused.Reason))
	}
	if !m.Group.Paused.IsZero() {
		add("Its group %s is paused since %s%s%s; queued runs wait too.", m.Group.Name, stamp(m.Group.Paused),
			by(m.Group.By), because(m.Group.Reason))
	}
	if !m.Held.ID.IsZero() {
		add("It fires again when its dead run %s is retried or cancelled: %s", m.Held.ID, m.Held.Error)
	}
	if !m.Run.ID.IsZero() {
		reasons = append(reasons, m.waitsForRun())
	}
	if len(reasons) == 0 || m.Due.IsZero() {
		reasons = append(reasons, m.waitsForDue())
	}
	return reasons
}

func (m ManifestInfo) waitsForRun() string {
	text := fmt.Sprintf("Its run %s is %s", m.Run.ID, m.Run.State)
	switch m.Run.State {
	case RunWaiting:
		text += " until " + stamp(m.Run.Ready)
	case RunQueued:
		text += " since " + stamp(m.Run.Ready)
		if m.Group.Max > 0 {
			text += fmt.Sprintf(", and its group %s has %d of %d runs active", m.Group.Name, m.Group.Active,
				m.Group.Max)
		}
	}
	return text + "; the next run follows when it has ended."
}

func (m ManifestInfo) waitsForDue() string {
	switch {
	case !m.Due.IsZero() && m.Due.After(m.History.Now):
		return fmt.Sprintf("Nothing is due until %s.", stamp(m.Due))
	case !m.Due.IsZero():
		return fmt.Sprintf(
			`It is due since %s, and no server has evaluated it: "edda lease list" shows whether one runs.`,
			stamp(m.Due))
	}
	switch m.read.rule.Kind {
	case plan.OnDemand:
		return "It has no clock: it fires when it is triggered."
	case plan.Dormant:
		return fmt.Sprintf("It fires when a run of %s activates it.%s", m.Parent.Name, m.orphanOf())
	case plan.After:
		return fmt.Sprintf("It fires when %s succeeds. Last success: %s.%s", m.Parent.Name,
			or(stamp(m.Parent.Fired), "never"), m.orphanOf())
	}
	return "It is never due again: it has fired, or it has expired."
}

func (m ManifestInfo) orphanOf() string {
	if m.Parent.Missing {
		return " That manifest does not exist any more."
	}
	return ""
}

func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// stamp formats a time to the second, in its own zone; a time in the local zone is formatted in UTC.
func stamp(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Location() == time.Local: //nolint:gosmopolitan // the zone of times that the driver returns
		t = t.UTC()
	}
	return t.Format("2006-01-02 15:04:05 MST")
}
