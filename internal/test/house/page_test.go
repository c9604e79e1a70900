package house

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// pagePart matches the text between "// page name" and "// end" in an example.
var pagePart = regexp.MustCompile(`(?s)(?:^|\n)\t*// page (\w+)\n+(.*?)\n+\t*// end\n`)

// examplesOf returns the pages with blocks of Go, and the files that these are parts of. The tests of examples/tutorial
// compile the blocks of docs/tutorial, page after page, as a reader does.
func examplesOf() map[string][]string {
	all := map[string][]string{
		"docs/operate/recoverability.md": {"recoverability/page_example_test.go", "bus/page_example_test.go"},
		"docs/guide/watermill.md":        {"bus/watermill/page_example_test.go", "bus/watermill/move_test.go"},
		"docs/guide/setup.md":            {"example_test.go"},
		"docs/guide/scheduler.md":        {"example_schedule_test.go"},
		"docs/guide/handlers.md":         examplesOfHandlers,
		"docs/guide/items.md":            {"persistence/items_example_test.go"},
		"docs/guide/history.md":          {"history/whereabouts/page_example_test.go", "bus/history_secret_test.go"},
		"docs/operate/audit.md":          {"internal/store/audit/page_example_test.go"},
		"docs/operate/vitals.md":         {"operate/vitals/page_example_test.go"},
		"docs/guide/ui.md":               {"eddaui/page_example_test.go"},
		"docs/operate/repairs.md":        {"operate/page_example_test.go"},
		"docs/guide/changing.md": inFolder("examples/changing", "rename.go", "members.go", "retire.go", "key.go",
			"move.go"),
		"docs/comparison/nservicebus.md": {"examples/comparison/order.go"},
		"docs/comparison/masstransit.md": {"examples/comparison/order.go"},
		"docs/comparison/temporal.md":    {"examples/comparison/order.go"},
		"docs/comparison/river.md":       inFolder("examples/comparison", "jobs.go", "step.go"),
		"docs/comparison/watermill.md":   {"examples/comparison/step.go"},
		"docs/guide/tracing.md":          {"eddaotel/page_example_test.go", "eddaotel/collector/demo_test.go"},
	}
	for pattern, files := range examplesOfPatterns {
		all["docs/patterns/"+pattern+".md"] = files
	}
	return all
}

// The code on these pages is compiled and tested.
func TestPagesShowTheExamples(t *testing.T) {
	t.Parallel()
	for page, files := range examplesOf() {
		showsParts(t, page, files...)
	}
}

// A block of Go is a part of a file that is compiled, or it is marked as a fragment: "```go fragment", which the site
// shows, or indented.
func TestEveryBlockOfGoIsCompiledOrAFragment(t *testing.T) {
	t.Parallel()
	compiledOn := examplesOf()
	for _, page := range append(markdown(t, "docs"), "README.md") {
		_, compiled := compiledOn[page]
		compiled = compiled || page == "README.md" || strings.HasPrefix(page, "docs/tutorial/")
		for _, fault := range unmarked(read(t, page), compiled) {
			t.Errorf("%s: %s", page, fault)
		}
	}
}

var fencedGo = regexp.MustCompile("(?m)^ *```+ *(?i:go|golang)\\b(.*)$")

// unmarked returns the blocks of a page that look as if they were compiled, and are not.
func unmarked(page string, compiled bool) (faults []string) {
	for _, m := range fencedGo.FindAllStringSubmatch(page, -1) {
		switch {
		case m[1] == " fragment":
		case m[0] != "```go":
			faults = append(faults, fmt.Sprintf("a block begins with %q", m[0]))
		case !compiled:
			faults = append(faults, "a block is neither a part of a file in examplesOf nor a fragment")
		}
	}
	return faults
}

func TestUnmarkedBlocksAreSeen(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]int{
		"```go\nx()\n```\n": 1, "```go fragment\nx()\n```\n": 0, "    x()\n": 0, "```sql\nSELECT 1\n```\n": 0,
		"```Go\nx()\n```\n": 1, "```golang\nx()\n```\n": 1, "- a\n\n  ```go\n  x()\n  ```\n": 1,
		"```go fragments\nx()\n```\n": 1,
	} {
		if got := unmarked(page, false); len(got) != want {
			t.Errorf("%q: %q, want %d", page, got, want)
		}
	}
}

// inFolder returns the paths of files in a folder.
func inFolder(folder string, files ...string) []string {
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = folder + "/" + file
	}
	return paths
}

// showsParts checks that the blocks of Go on a page are the parts of these files.
func showsParts(t *testing.T, path string, files ...string) {
	t.Helper()
	page := read(t, path)
	shown := 0
	for _, file := range files {
		for _, part := range pagePart.FindAllStringSubmatch(read(t, file), -1) {
			shown++
			if block := "```go\n" + outdented(part[2]) + "\n```\n"; !strings.Contains(page, block) {
				t.Errorf("%s has not this block, the part %q of %s:\n%s", path, part[1], file, block)
			}
		}
	}
	if blocks := strings.Count(page, "```go\n"); blocks != shown {
		t.Errorf("%s has %d blocks of code, and the files %d parts", path, blocks, shown)
	}
}
