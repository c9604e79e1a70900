package big

import (
	"crypto/md5" //nolint:gosec // a name, and no secret
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/edda-go/edda/saga"
)

// Page is a page to request.
type Page struct{ Name, Path string }

// example is the number of an order with a history.
func (w *World) example() int64 {
	n := int64(w.lives()) - 100
	return n - n%10
}

// Instance is the page of an instance of twenty versions.
func (w *World) Instance() string {
	name, k := named(w.example())
	return "/sagas/" + name + "/" + k
}

// Pages returns one page or more of each kind, the ones that read most.
func (w *World) Pages() []Page {
	n := w.example()
	name, k := named(n)
	waiting, handled := w.message(n, versions+1), w.message(n, versions)
	some := int64(w.Queued - min(w.lives(), w.Queued/2))
	burst := IDOf(w.now-10000+some/2*10000/max(some, 1), ofBurst, some/2)
	late := int64(min(w.Living, w.Queued)) - 7
	timeout := fmt.Sprintf("/messages/%s?due=%d", IDOf(w.began, ofTimeout, late), (w.due()+late)*1000)
	run := IDOf(w.now-3600000+1, ofRun, 1)
	return []Page{
		{"now", "/"},
		{"now by name", "/now"},
		{"find a key", "/find?q=" + k},
		{"find nothing by name", "/find?q=nothing"},
		{"find a message", "/find?q=" + waiting.String()},
		{"find no id", "/find?q=" + saga.ID{1, 2, 3, 4, 5, 6, 0x47, 8, 0x89}.String()},
		{"endpoint, a million due", "/endpoints/payments"},
		{"endpoint, a million delayed", "/endpoints/orders"},
		{"dead letters", "/dead"},
		{"dead letters of an endpoint", "/dead?endpoint=mails"},
		{"group, the largest", "/dead/groups/" + Group(0)},
		{"group, the smallest", "/dead/groups/" + Group(w.Groups-1)},
		{"dead letter", fmt.Sprintf("/dead/%d", w.Letters/2)},
		{"job", "/jobs/1"},
		{"sagas", "/sagas"},
		{"instances", "/sagas/" + name},
		{"instances by prefix", "/sagas/" + name + "?prefix=k-0000"},
		{"instance", w.Instance()},
		{"instance by a query", "/instance?saga=" + name + "&key=" + k},
		{"instance without history", fmt.Sprintf("/sagas/refund/%s", key(int64(w.Living)/10*10-1))},
		{"message that waits", "/messages/" + waiting.String()},
		{"message that was handled", "/messages/" + handled.String()},
		{"message of a burst", "/messages/" + burst.String()},
		{"timeout", timeout},
		{"message of a dead letter", "/messages/" + IDOf(w.began, ofLetter, int64(w.Letters)/2).String()},
		{"conversation", "/conversations/" + w.message(n, 1).String()},
		{"schedules", "/manifests"},
		{"manifest", "/manifests/night%2Fm-000"},
		{"run", "/runs/" + run.String()},
		{"limits", "/limits"},
		{"border", "/border"},
		{"processes", "/processes"},
		{"database", "/database"},
		{"map", "/map"},
		{"audit", "/audit"},
	}
}

// Group is the name of a group of dead letters by its number, 0 of the largest.
func Group(n int) string {
	sum := md5.Sum(fmt.Append(nil, n)) //nolint:gosec // a name, and no secret
	return hex.EncodeToString(sum[:6])
}

// JSON is the address of the same page as JSON.
func JSON(path string) string {
	path, query, asked := strings.Cut(path, "?")
	if path == "/" {
		path = "/now"
	}
	if path += ".json"; asked {
		path += "?" + query
	}
	return path
}
