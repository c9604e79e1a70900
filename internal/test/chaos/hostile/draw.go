package hostile

import (
	"math/rand/v2"
	"strings"
	"time"
)

// draw draws the parts of hostile messages.
type draw struct{ *rand.Rand }

func (d draw) of(all ...string) string { return all[d.IntN(len(all))] }

// noise is up to most random bytes.
func (d draw) noise(most int) string {
	b := make([]byte, d.IntN(most+1))
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return string(b)
}

func (d draw) id() string {
	return d.of("", "", "\x00", d.noise(30), strings.Repeat("i", 1+d.IntN(5000)),
		"00000000-0000-0000-0000-000000000000", "order 7")
}

func (d draw) kind() string {
	return d.of(order{}.Kind(), pay{}.Kind(), call{}.Kind(), outgoing{}.Kind(), setting{}.Kind(), oddPay{}.Kind(),
		"nobody.knows",
		"", "order.pl\xe4ce", "Upper Case", d.noise(40), strings.Repeat("k", 1+d.IntN(100_000)),
		"'; DROP SCHEMA edda CASCADE; --", "a\nb", "\x1b[2J")
}

// names of headers that mean something to somebody.
var names = []string{
	"edda-version", "edda-intent", "edda-expire", "edda-from", "edda-origin", "edda-instance", "edda-saga",
	"edda-conversation", "edda-correlation", "edda-related-to",
	"edda-manifest", "edda-run", "edda-run-attempt", "edda-fire-due", "edda-fire-zone", "edda-unheard-of",
	"EDDA-Version", "watermill-uuid",
	"Nats-Rollup", "Nats-TTL", "nats-msg-id", "traceparent", "Content-Length", "__proto__", "",
}

func (d draw) value() string {
	return d.of("", "2", "-1", "99999999999999999999", "all", "timer", "publish", "command", "NaN", "no.such.endpoint",
		shop, border,
		"00000000-0000-0000-0000-000000000000", "018f0000-0000-7000-8000-000000000001", time.Now().Format(time.RFC3339),
		d.noise(50),
		"\x00", "\r\nX-Injected: yes", strings.Repeat("v", d.IntN(20_000)))
}

// moments that a row may name. The first two are of the past: as the due of a message they are now.
var moments = []string{"0001-01-01 00:00:00+00", "1526-01-01", "1970-01-01", "2526-01-01", "-infinity", "infinity"}

// header is a map as a broker or a Go program gives it.
func (d draw) header() map[string]string {
	h := map[string]string{}
	for range d.IntN(4) {
		h[names[d.IntN(len(names))]] = d.value()
	}
	switch d.IntN(20) {
	case 0:
		for range d.IntN(30_000) {
			h[d.noise(8)] = ""
		}
	case 1:
		h[d.noise(30)] = strings.Repeat("x", 1<<20)
	}
	return h
}

// rawHeader is bytes where a worker expects a flat JSON object of strings.
func (d draw) rawHeader() []byte {
	switch d.IntN(12) {
	case 0:
		return []byte(d.noise(200))
	case 1:
		return []byte(d.of("", "null", "[]", "7", `"text"`, "{", `{"a":1}`, `{"a":{"b":"c"}}`, `{"a":null}`,
			`{"a":"\ud800"}`, `{"a":"\u0000"}`, `{"a":"b","a":"c"}`, `{"edda-intent":["publish"]}`))
	case 2:
		return []byte(strings.Repeat("[", 100_000))
	case 3: // as much as fits, of names that are not the user's
		h := map[string]string{}
		for range d.IntN(40_000) {
			h["edda-"+strings.ToValidUTF8(d.noise(6), "?")] = ""
		}
		return asJSON(h)
	case 4:
		return asJSON(map[string]string{"large": strings.Repeat("h", d.IntN(4<<20))})
	}
	return asJSON(d.header())
}

func (d draw) body() []byte {
	switch d.IntN(12) {
	case 0:
		return nil
	case 1:
		return []byte(d.noise(2000))
	case 2:
		return []byte(strings.Repeat(`{"N":`, 50_000))
	case 3:
		return make([]byte, d.IntN(3<<20))
	case 4:
		return []byte(`{"N":1e400}`)
	}
	return []byte(d.of("", "{}", "null", "[]", `{"N":-5}`, `{"N":"seven"}`, `{"N":0,"SQL":"SELECT 1"}`, "\xff\xfe",
		`{"Do":99999999999999999999}`, `{"SQL":7}`))
}

// misuses are what a handler may do to the transaction that it shares with others. COMMIT is not among them: a handler
// that commits the transaction of its batch commits what its neighbours wrote, see docs/internals/lifecycle.md.
var misuses = []string{
	"SELECT 1",
	"SELECT 1/0",
	"ROLLBACK",
	"SET LOCAL ROLE hostile_sender",
	"SET ROLE hostile_sender",
	"DEALLOCATE ALL",
	"SET TRANSACTION READ ONLY",
	"SET LOCAL default_transaction_read_only = on",
	"SET default_transaction_read_only = on",
	"SET LOCAL statement_timeout = '1ms'",
	"SET statement_timeout = '1ms'",
	"SET LOCAL lock_timeout = '1ms'",
	"SET LOCAL idle_in_transaction_session_timeout = '1ms'",
	"SET idle_in_transaction_session_timeout = 0",
	"SET LOCAL search_path = nowhere",
	"SET search_path = nowhere",
	"SET LOCAL enable_indexscan = off",
	"SET default_transaction_isolation = 'serializable'",
	"SET bytea_output = 'escape'",
	"SET datestyle = 'German'",
	"SET standard_conforming_strings = off",
	"SET session_replication_role = 'replica'",
	"RESET ALL",
	"SET LOCAL work_mem = '64kB'",
	"SAVEPOINT a; RELEASE SAVEPOINT a",
	"SELECT pg_sleep(1.5)",
	"SELECT 1 /* overrun */",
	"SELECT pg_cancel_backend(pg_backend_pid())",
	"SELECT pg_terminate_backend(pg_backend_pid())",
	"SELECT pg_advisory_xact_lock(1)",
	"UPDATE edda.queue SET created = created",
	"DROP TABLE edda.saga",
	"SELECT repeat('x', 200000000)",
}

func (d draw) setting() setting { return setting{SQL: d.of(misuses...)} }
