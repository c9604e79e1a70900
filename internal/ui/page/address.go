package page

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/edda-go/edda/saga"
)

// Seconds is a duration that is a number of seconds in JSON.
type Seconds time.Duration

// MarshalJSON writes the seconds as a number.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// segment writes a name as one part of a path.
func segment(name string) string { return url.PathEscape(name) }

func escapeQuery(text string) string { return url.QueryEscape(text) }

// Instance returns the address of an instance. Some keys cannot be a part of a path, because a browser would remove
// it.
func Instance(name, key string) string {
	if odd(name) || odd(key) {
		return "instance?saga=" + escapeQuery(name) + "&key=" + escapeQuery(key)
	}
	return "sagas/" + segment(name) + "/" + segment(key)
}

// LifeOf returns the address of one life of a key: an instance from its start to its end.
func LifeOf(name, key string, id saga.ID) string {
	link := Instance(name, key)
	if strings.Contains(link, "?") {
		return link + "&life=" + id.String()
	}
	return link + "?life=" + id.String()
}

func odd(part string) bool {
	return part == "" || part == "." || part == ".." || strings.HasSuffix(part, ".json")
}
