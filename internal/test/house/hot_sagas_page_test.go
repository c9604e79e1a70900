package house

import (
	"regexp"
	"strings"
	"testing"
)

var scatterLine = regexp.MustCompile(`(?m)^\| (flat|sequential) \| optimistic \| ([^|]+) \|`)

// The page has the facts that the requirements demand: how each store works, the four kinds of remedies, when a saga
// needs an endpoint of its own, how much a distant database costs, how long the sequential design takes, and further
// reading. The conformance page has the same numbers. The page of an endpoint has the columns that the page names.
func TestHotSagasPageSaysWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/guide/hot-sagas.md")
	wants := func(what, text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not say %q", what, part)
			}
		}
	}
	_, stores, _ := strings.Cut(page, "\n## Which store\n")
	stores, _, _ = strings.Cut(stores, "\n## ")
	wants("docs/guide/hot-sagas.md, which store", stores,
		"**pessimistic** store, which is the default: with the lock in hand", "**optimistic** store",
		"rather lose a step than have a lock")
	wants("docs/guide/hot-sagas.md", page, "**Keep the database close.**",
		"https://lostechies.com/jimmybogard/2014/02/27/reducing-nservicebus-saga-load/")
	wants("docs/guide/hot-sagas.md", page, "take the pessimistic store", "**Fewer workers.**",
		"**An endpoint of its own.**", "**Divide the saga.**", "give it an endpoint of its own")
	endpoint := read(t, "eddaui/html/endpoint.html")
	_, seeing, _ := strings.Cut(page, "\n## Seeing it\n")
	seeing, _, _ = strings.Cut(seeing, "\n## ")
	for _, column := range []string{"Conflicts", "Handled", "Handler", "Due to commit", "Waiting for instances",
		"Waits that timed out"} {
		wants("docs/guide/hot-sagas.md, seeing it", seeing, "*"+column+"*")
		wants("the page of an endpoint", endpoint, ">"+column)
	}
	answers, _ := readAnswers(read(t, conformancePage))
	measured := scatterLine.FindAllStringSubmatch(page, -1)
	if len(measured) != 2 {
		t.Fatalf("docs/guide/hot-sagas.md measures %q, want flat and sequential", measured)
	}
	for _, m := range measured {
		wants("S4-62 of "+conformancePage, answers["S4-62"].how, strings.TrimSpace(m[2]))
	}
}
