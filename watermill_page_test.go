package edda_test

import "testing"

// What a reader copies from docs/guide/watermill.md is what the compiler and the tests have seen.
func TestWatermillPageShowsTheExamples(t *testing.T) {
	t.Parallel()
	showsParts(t, "docs/guide/watermill.md", "bus/watermill/page_example_test.go", "bus/watermill/move_test.go")
}
