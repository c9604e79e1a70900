package main

import (
	"strings"
	"testing"
)

// relayed has three copies of messages that the relay shop has sent.
func relayed(t *testing.T) *world {
	t.Helper()
	w := migrated(t)
	w.want(exitDone, "migrate", "install", "shop")
	w.exec(`INSERT INTO edda.outbox (slot, endpoint, relayed, id, sent, kind, header, body)
		SELECT n % 4, 'shop', now() - n * interval '1 hour', ('00000000-0000-0000-0000-00000000000' || n)::uuid,
		now() - interval '1 day',
			CASE n WHEN 2 THEN 'order.lost' ELSE 'order.paid' END,
			'{"tenant":"acme","edda-manifest":"m","edda-run":"00000000-0000-0000-0000-000000000009"}',
			convert_to('{"N":' || n || '}', 'UTF8')
		FROM generate_series(1, 3) n`)
	return w
}

func TestOutboxListsAndShows(t *testing.T) {
	w := relayed(t)
	w.prints(w.want(exitDone, "outbox", "list", "shop", "--limit", "2").out, `
		| RELAYED ID KIND SENT BYTES
		| TIME ID order.paid TIME 7
		| TIME ID order.lost TIME 7
		| There may be more: --after TIME/ID`)
	var first, second struct {
		Next     string
		Messages []keptJSON
	}
	w.decode(&first, "outbox", "list", "shop", "--limit", "2", "--json")
	w.decode(&second, "outbox", "list", "shop", "--after", first.Next, "--json")
	if len(first.Messages) != 2 || len(second.Messages) != 1 || second.Messages[0].ID[15] != 1 || second.Next != "" {
		t.Errorf("%+v\n%+v", first, second)
	}
	says(t, w.want(exitDone, "outbox", "list", "shop", "--kind", "order.lost", "--since", "150m", "--until", "90m").out,
		"order.lost")
	w.prints(w.want(exitDone, "outbox", "list", "shop", "--since", "10m").out, `| No copy of a message matches.`)
	says(t, w.want(exitDone, "outbox", "show", "00000000-0000-0000-0000-000000000002", "--body").out, "order.lost",
		`"N": 2`, "acme")
	says(t, w.want(exitNotFound, "outbox", "show", "00000000-0000-0000-0000-000000000007").err, "no copy of message")
}

func TestOutboxReplays(t *testing.T) {
	w := relayed(t)
	w.prints(w.want(exitDone, "outbox", "replay", "shop", "--since", "150m").out,
		`| 2 messages were put back into the queue of shop.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE convert_from(header,
		'UTF8') = '{"tenant":"acme"}'`); n != 2 {
		t.Errorf("%d messages are in the queue without their runs, want 2", n)
	}
	w.prints(w.want(exitDone, "outbox", "replay", "shop", "--since", "24h", "--kind", "order.lost").out,
		`| 1 message was put back into the queue of shop.`)
	says(t, w.want(exitNotFound, "outbox", "replay", "nowhere", "--since", "1h").err, "nowhere", "no queue")
	for command, complaint := range map[string]string{
		"replay shop":              "--since is missing",
		"replay shop --since soon": "--since soon",
		"list shop --after 7":      "--after 7",
		"list shop --limit 0":      "--limit is 0",
		"show seven":               "want a UUID",
		"keep soon":                "want a duration",
	} {
		says(t, w.want(exitUsage, append([]string{"outbox"}, strings.Fields(command)...)...).err, complaint)
	}
}

func TestInboxKeep(t *testing.T) {
	w := migrated(t)
	w.prints(w.want(exitDone, "inbox", "keep").out, `| The inbox is kept for 168h0m0s; it was last rotated at TIME.`)
	w.prints(w.want(exitDone, "inbox", "keep", "336h").out,
		`| The inbox is kept for 336h0m0s; it was last rotated at TIME.`)
	says(t, w.want(exitDone, "outbox", "keep", "--json").out, `"keep_seconds": 604800`)
	says(t, w.want(exitFailed, "outbox", "keep", "1s").err, "keep is 1s, want 1m0s")
}
