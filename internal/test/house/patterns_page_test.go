package house

import (
	"path"
	"strings"
	"testing"
)

// examplesOfPatterns lists, for each page of docs/patterns, the files whose parts it shows.
var examplesOfPatterns = map[string][]string{
	"aggregate":       inFolder("examples/patterns/aggregate", "batch.go"),
	"approval":        inFolder("examples/patterns/approval", "expense.go", "desk.go"),
	"compensation":    inFolder("examples/patterns/compensation", "trip.go"),
	"debounce":        inFolder("examples/patterns/debounce", "burst.go"),
	"idempotent-http": inFolder("examples/patterns/idempotent", "shop.go"),
	"outbox-http":     inFolder("examples/patterns/outbox", "shop.go", "webhooks.go"),
	"polling":         inFolder("examples/patterns/polling", "job.go", "system.go"),
	"saga-of-sagas":   inFolder("examples/patterns/nested", "shipment.go", "parcel.go"),
	"scatter-gather":  inFolder("examples/patterns/scatter", "search.go"),
}

// examplesOfHandlers are the files whose parts docs/guide/handlers.md shows.
var examplesOfHandlers = inFolder("examples/handlers", "apart.go", "together.go", "chain.go", "sagas.go")

// Each pattern shows code, which TestPagesShowTheExamples compares, and the facts that a reader needs before they
// copy it.
func TestPatternsShowTheExamples(t *testing.T) {
	t.Parallel()
	pages := markdown(t, "docs/patterns")
	if len(pages) != len(examplesOfPatterns) {
		t.Errorf("docs/patterns has %d pages, and %d of them are listed", len(pages), len(examplesOfPatterns))
	}
	for _, page := range pages {
		files := examplesOfPatterns[strings.TrimSuffix(path.Base(page), ".md")]
		if len(files) == 0 {
			t.Errorf("%s shows no example", page)
			continue
		}
		text := read(t, page)
		for _, want := range []string{"\nYou want ", "\n## When it fails halfway\n", "\n## What to watch\n",
			"\n## Limits\n", "(../../" + path.Dir(files[0]) + "/"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", page, want)
			}
		}
	}
}
