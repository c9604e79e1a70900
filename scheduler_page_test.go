package edda_test

import (
	"strings"
	"testing"
)

// The page tells of each loop which servers run it, and how they keep out of each other's way.
func TestPageTellsTheStrategyOfEachLoop(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(read(t, "docs/scheduler.md"), "\n## The loops\n")
	section, _, _ := strings.Cut(after, "\n## ")
	for loop, words := range map[string][]string{
		"evaluate":  {"| one server |", "a lease says who", "an advisory lock of the transaction", "unique indexes decide", "each second"},
		"dispatch":  {"| every server |", "`SKIP LOCKED`", "one transaction for run, attempt and message", "each second"},
		"reconcile": {"| the server of the lease |", "the lease's term guards each transaction", "each minute"},
		"clean up":  {"| every server |", "deleting what is gone is no error", "each minute"},
	} {
		line := lineThatBegins(section, "| "+loop+": ")
		for _, word := range words {
			if !strings.Contains(line, word) {
				t.Errorf("docs/scheduler.md does not say %q of the loop %s: %q", word, loop, line)
			}
		}
	}
}

// The page tells that a soft cap is soft, by how much, and why it is.
func TestPageTellsThatASoftCapIsSoft(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(read(t, "docs/scheduler.md"), "\n## Groups\n")
	section, _, _ := strings.Cut(after, "\n## ")
	section = strings.Join(strings.Fields(section), " ")
	for _, words := range []string{
		"Each server counts a soft cap (`Max`, and `Options.MaxActive`) by itself",
		"by at most a batch (100 runs) for each other server",
		"no lock of all servers",
		"A strict cap (`Strict`) is never exceeded",
	} {
		if !strings.Contains(section, words) {
			t.Errorf("docs/scheduler.md does not say of groups: %s", words)
		}
	}
}

// lineThatBegins returns the first line of text with the prefix, or "".
func lineThatBegins(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}
