package view

import (
	"encoding/json"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate/instances"
	"github.com/edda-go/edda/saga"
)

// Repaired shows the result of a repair of an instance.
func Repaired(r instances.Repair, done instances.Repaired) View {
	if done.Version == 0 {
		return View{}
	}
	diff := history.Diff(done.Before, done.After)
	return View{
		JSON: Object{"saga", r.Saga, "key", r.Key, "id", done.ID, "version", done.Version, "before",
			json.RawMessage(done.Before), "after", json.RawMessage(done.After), "diff", diff},
		Parts: []Part{linef("%s %s is repaired, and has version %d: %s", r.Saga, r.Key, done.Version, diff)},
	}
}

// Ended shows the result of the end of an instance by an operator.
func Ended(e instances.End, done instances.Ended) View {
	return View{
		JSON: Object{"saga", e.Saga, "key", e.Key, "id", done.ID, "version", done.Version, "timeouts",
			objects(done.Timeouts, timeoutOf), "state", json.RawMessage(done.State)},
		Parts: []Part{linef("%s %s has ended at version %d, and %s cancelled.", e.Saga, e.Key,
			done.Version, Many(len(done.Timeouts), "timeout is", "timeouts are"))},
	}
}

func timeoutOf(p saga.Pending) Object {
	return Object{"name", p.Name, "kind", p.Kind, "due", p.Due.UTC(), "id", p.ID}
}

// Timeout shows the change of a timeout: fired, moved or cancelled.
func Timeout(of instances.Timeout, done string, p saga.Pending) View {
	text := linef("Timeout %s of %s %s is %s.", of.Name, of.Saga, of.Key, done)
	if done == "moved" {
		text = linef("Timeout %s of %s %s is due at %s.", of.Name, of.Saga, of.Key, Moment(p.Due))
	}
	return View{JSON: Object{"saga", of.Saga, "key", of.Key, "did", done, "timeout", timeoutOf(p)}, Parts: []Part{text}}
}
