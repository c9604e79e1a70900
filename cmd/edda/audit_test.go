package main

import (
	"strings"
	"testing"
)

// The audit has the changes of all commands, with the user of the machine and the reason.
func TestAudit(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "audit").out, `| Nothing was changed.`)
	w.want(exitDone, "migrate", "install", "orders")
	w.want(exitDone, "endpoint", "pause", "orders", "--reason", "closed\x1b[2J")
	w.want(exitDone, "limit", "set", "orders", "4", "--reason", "the bank is slow")
	w.want(exitDone, "limit", "set", "orders", "5")
	w.want(exitDone, "endpoint", "resume", "orders", "--reason", "open again")
	w.prints(w.want(exitDone, "audit").out, `
		| NUMBER AT BY VERB TARGET CHANGE REASON
		| 4 TIME ACTOR endpoint.resume orders paused_by gone, reason gone open again
		| 3 TIME ACTOR limit.set orders limit 4 → 5 -
		| 2 TIME ACTOR limit.set orders limit 4, operated true the bank is slow
		| 1 TIME ACTOR endpoint.pause orders paused_by ACTOR, reason closed\x1b[2J closed\x1b[2J`)
	w.prints(w.want(exitDone, "audit", "--verb", "limit", "--limit", "1", "--since", "1h").out, `
		| NUMBER AT BY VERB TARGET CHANGE REASON
		| 3 TIME ACTOR limit.set orders limit 4 → 5 -
		| There may be more: --after 3`)
	var page struct {
		Next    string
		Entries []struct {
			Number                int64
			By, Actor, Role, From string
			Verb, Target, Reason  string
			Before, After         map[string]any
		}
	}
	w.decode(&page, "audit", "--json", "--after", "3", "--by", actorName(), "--target", "orders")
	if len(page.Entries) != 2 || page.Entries[0].From != "edda" || page.Entries[0].Role == "" ||
		page.Entries[0].After["limit"] != 4.0 || page.Entries[0].Reason != "the bank is slow" {
		t.Errorf("%+v", page)
	}
	for wrong, reason := range map[string]string{
		"audit --limit 0": "want 1 to 10000", "audit --after -1": "the number of an entry",
		"audit --since noon": "--since", "audit all": "unknown command",
	} {
		s := runWith(t.Context(), strings.Fields(wrong)...)
		if s.code != exitUsage || !strings.Contains(s.err, reason) {
			t.Errorf("edda %s: code %d, %q, want it to say %q", wrong, s.code, s.err, reason)
		}
	}
}
