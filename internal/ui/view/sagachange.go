package view

import (
	"encoding/json"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
)

// Repaired shows the result of a repair of an instance.
func Repaired(before, after saga.Instance) View {
	if after.Version == 0 {
		return View{}
	}
	diff := history.Diff(before.State, after.State)
	return View{
		JSON: Object{"saga", after.Saga, "key", after.Key, "id", after.ID, "version", after.Version, "before",
			json.RawMessage(before.State), "after", json.RawMessage(after.State), "diff", diff},
		Parts: []Part{linef("%s %s is repaired, and has version %d: %s", after.Saga, after.Key, after.Version, diff)},
	}
}

// Ended shows the result of the end of an instance by an operator.
func Ended(i saga.Instance) View {
	return View{
		JSON: Object{"saga", i.Saga, "key", i.Key, "id", i.ID, "version", i.Version, "timeouts",
			objects(i.Pending, timeoutOf), "state", json.RawMessage(i.State)},
		Parts: []Part{linef("%s %s has ended at version %d, and %s cancelled.", i.Saga, i.Key,
			i.Version, Many(len(i.Pending), "timeout is", "timeouts are"))},
	}
}

func timeoutOf(p saga.Pending) Object {
	return Object{"name", p.Name, "kind", p.Kind, "due", p.Due.UTC(), "id", p.ID}
}

// Timeout shows the change of a timeout: fired, moved or cancelled.
func Timeout(of operate.Target, name, done string, p saga.Pending) View {
	text := linef("Timeout %s of %s %s is %s.", name, of.Saga, of.Key, done)
	if done == "moved" {
		text = linef("Timeout %s of %s %s is due at %s.", name, of.Saga, of.Key, Moment(p.Due))
	}
	return View{JSON: Object{"saga", of.Saga, "key", of.Key, "did", done, "timeout", timeoutOf(p)}, Parts: []Part{text}}
}
