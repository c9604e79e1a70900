package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestLeases(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "lease", "list").out, `| No lease of schema "SCHEMA" was ever held.`)
	says(t, w.want(exitNotFound, "lease", "resign", "singleton/rates").err, "no process holds the lease",
		"edda lease list")
	w.exec(`INSERT INTO edda.lease (name, holder, epoch, acquired, renewed, expires) VALUES
		('singleton/rates', E'pod\u001b[2J-7/0a1b', 7, now() - interval '1 hour', now(), now() + interval '90 minutes'),
		('scheduler', NULL, 3, now(), now(), now()),
		('singleton/old', 'pod-8/0a1c', 2, now() - interval '2 hours', now() - interval '1 hour',
		now() - interval '1 hour')`)
	w.prints(w.want(exitDone, "lease", "list").out, `
		| NAME HOLDER EPOCH HELD SINCE EXPIRES
		| scheduler - 3 no TIME -
		| singleton/old pod-8/0a1c 2 no TIME -
		| singleton/rates pod\x1b[2J-7/0a1b 7 yes TIME 1h30m`)
	w.prints(w.want(exitDone, "lease", "resign", "singleton/rates").out,
		`| The holder of singleton/rates was requested to give it up.`)
	says(t, w.want(exitNotFound, "lease", "resign", "singleton/old").err, "no process holds the lease")
	says(t, w.want(exitNotFound, "lease", "resign", "scheduler", "--json").err, "no process holds the lease")
	says(t, w.want(exitDone, "lease", "list").out, "resigning")
	var listed struct{ Leases []leaseJSON }
	w.decode(&listed, "lease", "list", "--json")
	if l := listed.Leases[2]; l.Name != "singleton/rates" || l.Epoch != 7 || !l.Held || !l.Resigning ||
		l.ExpiresIn < 5300 || l.ExpiresIn > 5400 ||
		l.Acquired == nil || listed.Leases[0].Held || listed.Leases[0].Holder != "" || listed.Leases[1].Held ||
		listed.Leases[1].ExpiresIn != 0 {
		t.Errorf("%+v", listed)
	}
	var asked map[string]string
	w.decode(&asked, "lease", "resign", "singleton/rates", "--json")
	if !reflect.DeepEqual(asked, map[string]string{"asked": "singleton/rates"}) {
		t.Error(asked)
	}
	for wrong, reason := range map[string]string{
		"lease resign": "accepts 1 arg", "lease lst": "did you mean list", "lease list all": "unknown command",
	} {
		if s := runWith(t.Context(), strings.Fields(wrong)...); s.code != exitUsage ||
			!strings.Contains(s.err, reason) {
			t.Errorf("edda %s: code %d, %q, want it to say %q", wrong, s.code, s.err, reason)
		}
	}
}
