package edda_test

import (
	"regexp"
	"strings"
	"testing"
)

// pagePart is what stands between "// page name" and "// end" in an example.
var pagePart = regexp.MustCompile(`(?s)(?:^|\n)\t*// page (\w+)\n+(.*?)\n+\t*// end\n`)

// What a reader copies from these pages is what the compiler and the tests have seen.
func TestPagesShowTheExamples(t *testing.T) {
	t.Parallel()
	for page, files := range map[string][]string{
		"docs/operate/recoverability.md": {"recoverability/page_example_test.go", "bus/page_example_test.go"},
		"docs/guide/watermill.md":        {"bus/watermill/page_example_test.go", "bus/watermill/move_test.go"},
		"docs/guide/setup.md":            {"example_test.go"},
		"docs/guide/scheduler.md":        {"example_schedule_test.go"},
		"docs/guide/handlers.md":         examplesOfHandlers,
		"docs/guide/items.md":            {"persistence/items_example_test.go"},
		"docs/guide/history.md":          {"history/whereabouts/page_example_test.go", "bus/history_secret_test.go"},
		"docs/operate/audit.md":          {"audit/page_example_test.go"},
		"docs/operate/vitals.md":         {"operate/vitals/page_example_test.go"},
		"docs/guide/ui.md":               {"eddaui/page_example_test.go"},
		"docs/operate/repairs.md":        {"operate/instances/page_example_test.go"},
		"docs/tutorial/1-a-saga.md": inFolder("examples/tutorial/part1", "order.go", "shop.go", "main.go",
			"order_test.go"),
		"docs/tutorial/2-another-service.md": inFolder("examples/tutorial/part2", "bank.go", "payments.go", "shop.go",
			"order.go", "order_test.go", "bank_test.go"),
		"docs/tutorial/3-time.md": inFolder("examples/tutorial/part3", "messages.go", "order.go", "payments.go",
			"shop.go", "order_test.go"),
		"docs/tutorial/4-break-and-repair.md": inFolder("examples/tutorial/part4", "bank.go", "shop.go", "payments.go",
			"kill_test.go"),
		"docs/tutorial/5-change.md": inFolder("examples/tutorial/part5", "messages.go", "payments.go", "shop.go",
			"order.go", "order_test.go"),
		"docs/tutorial/6-production.md": inFolder("examples/tutorial/part6", "setup.go", "main.go", "serve.go",
			"site.go", "pages.go"),
		"docs/guide/tracing.md": {"eddaotel/page_example_test.go", "eddaotel/collector/demo_test.go"},
	} {
		showsParts(t, page, files...)
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
