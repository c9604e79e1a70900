package main

import (
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "limit", "list").out, `| There is no limit in schema "SCHEMA".`)
	w.want(exitDone, "migrate", "install", "billing", "orders")
	says(t, w.want(exitNotFound, "limit", "get", "billing").err, "there is no such limit",
		"edda limit set ENDPOINT NUMBER")
	says(t, w.want(exitNotFound, "limit", "set", "biling", "3").err, "not installed", "edda queue list")

	w.prints(w.want(exitDone, "limit", "set", "billing", "3").out, `
		| name billing
		| limit 3
		| held 0
		| draining 0
		| waiting 0
		| waited -
		| declared -
		| set by operator`)
	says(t, w.want(exitNotFound, "limit", "reset", "billing").err, "no program has declared one", "stays at 3")
	w.want(exitDone, "limit", "set", "orders", "1")
	w.exec(`SELECT edda.set_limit('orders', 2, true)`)
	w.exec(`UPDATE edda.slot SET holder = 'h', expires = now() + interval '1 hour' WHERE name = 'billing' AND no < 3`)
	w.exec(`INSERT INTO edda.ticket (name, holder, since, expires) VALUES ('billing', 'i',
		now() - interval '90 minutes', now() + interval '1 hour')`)
	w.want(exitDone, "limit", "set", "billing", "1")
	w.prints(w.want(exitDone, "limit", "list").out, `
		| NAME LIMIT HELD DRAINING WAITING WAITED DECLARED SET BY
		| billing 1 2 1 1 1h30m - operator
		| orders 1 0 0 0 - 2 operator`)
	var listed struct{ Limits []limitJSON }
	w.decode(&listed, "limit", "list", "--json")
	if b := listed.Limits[0]; b.Name != "billing" || b.Limit != 1 || b.Held != 2 ||
		b.Draining != 1 || b.Waiting != 1 ||
		b.Waited < 5400 || b.Oldest == nil || listed.Limits[1].Limit != 1 || listed.Limits[1].Declared != 2 ||
		listed.Limits[1].SetBy != "operator" {
		t.Errorf("%+v", listed)
	}
	w.prints(w.want(exitDone, "limit", "reset", "orders").out, `
		| name orders
		| limit 2
		| held 0
		| draining 0
		| waiting 0
		| waited -
		| declared 2
		| set by program`)
}

// A program creates a limit of package limit by using it, and then it can be set like any other.
func TestLimitsOfAProgramsOwn(t *testing.T) {
	w := migrated(t)
	says(t, w.want(exitNotFound, "limit", "set", "named/exports", "5").err, "there is no such limit",
		"is made by the program")
	w.exec(`SELECT edda.set_limit('named/exports', 2, true)`)
	says(t, w.want(exitDone, "limit", "set", "named/exports", "5").out, "named/exports", "5", "operator")
	w.prints(w.want(exitDone, "limit", "list").out, `
		| NAME LIMIT HELD DRAINING WAITING WAITED DECLARED SET BY
		| named/exports 5 0 0 0 - 2 operator`)
	says(t, w.want(exitDone, "limit", "reset", "named/exports").out, "named/exports", "2", "program")
}

func TestLimitsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for wrong, reason := range map[string]string{
		"limit set billing 0":     "want 1 to 10000",
		"limit set billing -1":    "unknown shorthand flag",
		"limit set billing 10001": `"edda endpoint pause"`,
		"limit set billing three": "three is not a limit",
		"limit set billing":       "accepts 2 arg",
		"limit get":               "accepts 1 arg",
		"limit reset":             "accepts 1 arg",
		"limit lst":               "did you mean list",
	} {
		s := runWith(t.Context(), strings.Fields(wrong)...)
		if s.code != exitUsage || !strings.Contains(s.err, reason) {
			t.Errorf("edda %s: code %d, %q, want it to say %q", wrong, s.code, s.err, reason)
		}
	}
}
