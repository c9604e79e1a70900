package scheduler

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/internal/plan"
)

// Waits says in sentences why the manifest does not fire at this moment: each reason there is, what somebody has to do
// about first. A manifest that is live and has nothing due yet gets the sentence that says so.
func (m ManifestInfo) Waits() (reasons []string) {
	say := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if m.misread != "" {
		say("Its definition cannot be read: %s.", m.misread)
	}
	if !m.Orphaned.IsZero() {
		say("Nobody declares it any more, since %s: %q has left it out, or it was removed.", stamp(m.Orphaned), m.Owner)
	}
	if m.Stopped {
		say("Its declaration says Paused.")
	}
	if !m.Paused.IsZero() {
		say("It is paused since %s%s.", stamp(m.Paused), because(m.Reason))
	}
	if !m.GroupPaused.IsZero() {
		say("Its group %s is paused since %s%s: what is queued waits too.", m.Group, stamp(m.GroupPaused),
			because(m.GroupReason))
	}
	if !m.Held.IsZero() {
		say("Run %s is dead and holds it until somebody retries or cancels that: %s", m.Held, m.HeldError)
	}
	if !m.Run.IsZero() {
		reasons = append(reasons, m.waitsForRun())
	}
	if len(reasons) == 0 || m.Due.IsZero() {
		reasons = append(reasons, m.waitsForDue())
	}
	return reasons
}

func (m ManifestInfo) waitsForRun() string {
	text := fmt.Sprintf("Its run %s is %s", m.Run, m.RunState)
	switch m.RunState {
	case RunWaiting:
		text += " until " + stamp(m.RunReady)
	case RunQueued:
		text += " since " + stamp(m.RunReady)
		if m.GroupMax > 0 {
			text += fmt.Sprintf(", and its group %s has %d of %d runs active", m.Group, m.GroupActive, m.GroupMax)
		}
	}
	return text + "; the next one comes after it."
}

func (m ManifestInfo) waitsForDue() string {
	switch {
	case !m.Due.IsZero() && m.Due.After(m.Now):
		return fmt.Sprintf("Nothing is due until %s.", stamp(m.Due))
	case !m.Due.IsZero():
		return fmt.Sprintf(
			`It is due since %s, and no server has looked: does one run? "edda lease list" shows who evaluates.`,
			stamp(m.Due),
		)
	}
	switch m.rule.Kind {
	case plan.OnDemand:
		return "It fires when somebody triggers it, and no clock decides that."
	case plan.Dormant:
		return fmt.Sprintf("It fires when a run of %s activates it.%s", m.Parent, m.orphanOf())
	case plan.After:
		return fmt.Sprintf("It fires when %s succeeds, which it last did %s.%s", m.Parent,
			or(stamp(m.ParentFired), "never"), m.orphanOf())
	}
	return "It is due never again: it has fired, or it has expired."
}

func (m ManifestInfo) orphanOf() string {
	if m.NoParent {
		return " There is no manifest of that name any more."
	}
	return ""
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

// stamp is a moment to the second, in its own zone.
func stamp(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Location() == time.Local: //nolint:gosmopolitan // what a driver makes of a moment
		t = t.UTC()
	}
	return t.Format("2006-01-02 15:04:05 MST")
}
