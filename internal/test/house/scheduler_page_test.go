package house

import (
	"regexp"
	"strings"
	"testing"
)

// loopLine matches a line of the table of loops: the task of the loop, its servers, and how they avoid conflicts.
var loopLine = regexp.MustCompile(`(?m)^\| (evaluate|dispatch|reconcile|clean up): [^|]+\| ([^|]+) \| ([^|]+) \|`)

// docs/guide/scheduler.md has for each loop the servers that run it, and how they share it.
func TestSchedulerPageTellsHowServersShareEachLoop(t *testing.T) {
	t.Parallel()
	_, loops, _ := strings.Cut(read(t, "docs/guide/scheduler.md"), "\n## The loops\n")
	loops, _, _ = strings.Cut(loops, "\n## ")
	told := map[string][]string{}
	for _, m := range loopLine.FindAllStringSubmatch(loops, -1) {
		told[m[1]] = m[2:]
	}
	for loop, want := range map[string]struct{ on, how string }{
		"evaluate":  {"one server", "lease"},
		"dispatch":  {"every server", "SKIP LOCKED"},
		"reconcile": {"the server of the lease", "term"},
		"clean up":  {"every server", "no error"},
	} {
		if got := told[loop]; len(got) != 2 || got[0] != want.on || !strings.Contains(got[1], want.how) {
			t.Errorf("docs/guide/scheduler.md says of %s: %q; want that it runs on %s, with %s", loop, got, want.on,
				want.how)
		}
	}
}
