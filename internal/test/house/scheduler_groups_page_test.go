package house

import (
	"strings"
	"testing"
)

// The page explains that a soft cap is soft, by how much, and why.
func TestPageTellsThatASoftCapIsSoft(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(read(t, "docs/guide/scheduler.md"), "\n## Groups\n")
	section, _, _ := strings.Cut(after, "\n## ")
	section = strings.Join(strings.Fields(section), " ")
	for _, words := range []string{
		"Each server counts a soft cap (`Max`, and `Options.MaxActive`) by itself",
		"by at most a batch (100 runs) for each other server",
		"no lock of all servers",
		"A strict cap (`Strict`) is never exceeded",
	} {
		if !strings.Contains(section, words) {
			t.Errorf("docs/guide/scheduler.md does not say of groups: %s", words)
		}
	}
}
