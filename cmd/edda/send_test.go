package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func TestSend(t *testing.T) {
	w := living7(t)
	w.want(exitDone, "migrate", "install", "mails", "--kinds", "mail.send")
	const id = "0198c0de-0000-7000-8000-0000000000aa"
	file := w.file(`{"N":1}`)
	w.prints(w.want(exitDone, "send", "mail.send", "--body", file, "--id", id, "--header", "tenant=a=b", "--reason",
		"lost").out, `| Message ID is sent.`)
	w.prints(w.want(exitDone, "send", "mail.send", "--body", file, "--id", id).out,
		`| Message ID was sent before, and is not sent again.`)
	if n := w.count(`SELECT count(*) FROM edda.queue_2 WHERE id = '` + id + `' AND body = '{"N":1}'
		AND convert_from(header, 'UTF8')::json ->> 'tenant' = 'a=b'`); n != 1 {
		t.Errorf("%d messages are in the queue", n)
	}
	says(t, w.want(exitDone, "audit").out, "message.send", id, "lost")
	var sent struct {
		Message   string
		Duplicate bool
	}
	w.decode(&sent, "send", "answer", "--body", file, "--to", "orders", "--instance", "order/7", "--delay", "1h",
		"--json")
	if n := w.count(`SELECT count(*) FROM edda.queue_1 WHERE id = '` + sent.Message + `'
		AND due > now() + interval '50 minutes' AND convert_from(header, 'UTF8')::json ->> 'edda-instance' =
			'0198c0de-0000-7000-8000-000000000007'`); n != 1 {
		t.Errorf("%+v", sent)
	}
	says(t, w.want(exitFailed, "send", "none", "--body", file).err, "run the endpoint that handles it once, or install",
		"edda migrate install")
	w.want(exitNotFound, "send", "answer", "--body", file, "--to", "orders", "--instance", "order/8")
	says(t, w.want(exitFailed, "send", "mail.send", "--body", w.file("{")).err, "--raw")
	w.want(exitDone, "send", "mail.send", "--body", w.file("{"), "--raw")
	for command, complaint := range map[string]string{
		"":                         "--body is missing",
		"--body - --header tenant": "want NAME=VALUE",
		"--body - --instance a":    "want SAGA/KEY",
		"--body - --id 7":          "--id 7",
		"--body - --delay -1s":     "is in the past",
	} {
		says(t, w.want(exitUsage, append([]string{"send", "mail.send"}, strings.Fields(command)...)...).err, complaint)
	}
	var out, complaint bytes.Buffer
	code := run(t.Context(), []string{"send", "mail.send", "--body", "-", "--database", pgdev.DSN(t), "--schema",
		w.schema}, streams{in: strings.NewReader(`{"N":2}`), out: &out, err: &complaint})
	if code != exitDone || w.count(`SELECT count(*) FROM edda.queue_2 WHERE body = '{"N":2}'`) != 1 {
		t.Errorf("exit code %d: %s%s", code, out.String(), complaint.String())
	}
}
