package bus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// body is a row's input that is in a queue already, for a handler and for a saga.
func body(b string) func(*inputs) []result {
	return func(c *inputs) []result { return c.both(letter{body: b}) }
}

func envelope(header string) func(*inputs) []result {
	return func(c *inputs) []result { return c.both(letter{header: header, body: `{"Key":"k"}`}) }
}

func key(k string) func(*inputs) []result {
	return func(c *inputs) []result { return c.toSaga(letter{body: encoded(opening{Key: k})}) }
}

func encoded(m saga.Message) string {
	b, err := saga.JSON.Encode(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (c *inputs) toSaga(l letter) []result {
	c.t.Helper()
	return []result{c.arrive("saga", bus.Saga(c.jars()), opening{}.Kind(), l)}
}

// Inputs that arrive at handlers.
var arrivedInputs = []badInput{
	{"B1", "a text with an escaped NUL, for a handler and for a state", body(`{"Key":"k","Text":"a\u0000b"}`),
		fate("handled")},
	{"B4", "a text with a lone surrogate", body(`{"Key":"k","Text":"\ud800"}`), fate("handled")},
	{"B5", "duplicate keys, and keys in another case", body(` {"key":"j","Key":"k","N":1,"N":2} `), fate("handled")},
	{"B6", "a number that no field holds", body(`{"Key":"k","F":4111222233334444e131072}`),
		dead(nil, "decode", "number")},
	{"B6", "a number with a fraction for an integer", body(`{"Key":"k","N":4111222233334444.5}`),
		dead(nil, "decode", "number", "N")},
	{"B6", "NaN in a body", body(`{"Key":"k","F":NaN}`), dead(nil, "decode")},
	{"B7", "a body nested 20,000 deep", body(nested(20_000)), dead(nil, "decode", "nested deeper than 1000")},
	{"B7", "20,000 brackets that never end", body(strings.Repeat("[", 20_000)),
		dead(nil, "decode", "nested deeper than 1000")},
	{"B8", "an empty body", body(""), dead(nil, "decode")},
	{"B8", "white space", body(" \n\t "), dead(nil, "decode")},
	{"B8", "a text for an object", body(`""`), dead(nil, "decode", "string")},
	{"B8", "null, which is the zero value, for a handler", (*inputs).nullBody, fate("handled")},
	{"B8", "null for a saga, which finds no key in it",
		func(c *inputs) []result { return c.toSaga(letter{body: "null"}) }, dead(nil, "key of input.open", "empty")},
	{"B8", "no body for a type without fields", (*inputs).noBody, fate("handled")},
	{"B12", "line ends, escapes and turned text in a stored header", (*inputs).ugly, fate("exactly")},
	{"B12", "the same in a key, in the text of an error", (*inputs).uglyKey,
		dead(saga.ErrTooLarge, `"k\r\n\x1b[2J\u202e"`)},
	{"B12", "the same in an error, in the log", (*inputs).uglyLog, fate("escaped")},
	{"B13", "a kind that nobody knows", func(c *inputs) []result {
		return c.both(
			letter{kind: "input.unknown", body: "x\xff"})
	},
		fate("dead after 0", "input.unknown", "no program that consumes this queue handles its kind", "input.")},
	{"B14", "bytes", body("\x00\xff" + secret), dead(saga.ErrInvalidText, "decode")},
	{"B14", "half an object", body(`{"Key":"` + secret), dead(nil, "decode")},
	{"B14", "an object and more", body(`{"Key":"k"}` + secret), dead(nil, "decode")},
	{"B14", "another type", body(`{"Key":"k","N":"` + secret + `"}`), dead(nil, "decode", "string", "N")},
	{"B14", "a time that is none", body(`{"Key":"k","At":"` + secret + `"}`), dead(nil, "decode", "time of 6 bytes")},
	{"B15", "a header without a version", envelope(`{}`), fate("handled")},
	{"B15", "a header of this version", envelope(`{"edda-version":"1"}`), fate("handled")},
	{"B15", "a header of a newer version", envelope(`{"edda-version":"2"}`), fate("dead after 0", "newer program")},
	{"B15", "one with an intent that this one does not know", envelope(`{"edda-intent":"whisper","edda-version":"2"}`),
		fate("dead after 0", "newer program")},
	{"B15", "the newer header, in the log", (*inputs).newerLog, fate("logged")},
	{"B15", "a version that is no number", envelope(`{"edda-version":"` + secret + `"}`),
		dead(nil, "edda-version", "6 bytes")},
	{"B15", "a header that is no object", envelope(secret), dead(nil, "header")},
	{"B15", "a stored header that is not UTF-8", envelope("{\"a\":\"" + invalid + "\"}"),
		dead(saga.ErrInvalidText, "header")},
	{"B15", "an instance that is no id", envelope(`{"edda-instance":"` + secret + `"}`),
		dead(nil, "edda-instance", "6 bytes")},
	{"B16", "fields that nobody knows", body(`{"Key":"k","More":{"a":[1]},"N":1}`), fate("handled")},
	{"B22", "no key", key(""), dead(nil, "key of input.open", "empty")},
	{"B22", "the nil UUID for a key", key("00000000-0000-0000-0000-000000000000"),
		dead(nil, "key of input.open", "nil UUID")},
	{"B22", "a zero for a key, which is one", key("0"), fate("handled")},
	{"B22", "a key of 512 bytes", key(text(512)), fate("handled")},
	{"B22", "a key of 513 bytes", key(secret + text(507)),
		dead(saga.ErrTooLarge, "key of input.open", "513 bytes", "at most 512")},
	{"B22", "a key of 4 KB", key(secret + text(4090)), dead(saga.ErrTooLarge, "4096 bytes", "at most 512")},
	{"B22", "a key with NUL", key(secret + "\x00"), dead(saga.ErrInvalidText, "key of input.open", "7 bytes")},
	{"B22", "keys that look alike", (*inputs).alike, fate("7 instances")},
}

func (c *inputs) nullBody() []result {
	plain := bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m note) error {
		if m.Key == "" && m != (note{}) {
			return errors.New("it is not the zero value")
		}
		return nil
	})
	return []result{c.arrive("handler", plain, note{}.Kind(), letter{body: "null"})}
}

func (c *inputs) noBody() []result {
	both := func(*bus.Context, pgx.Tx, blank) error { return nil }
	return []result{c.arrive("handler", bus.HandleTx(both), blank{}.Kind(), letter{body: ""})}
}

const uglyText = "k\r\n\x1b[2J\u202e"

// ugly sends a header in every way, and reads it in a handler.
func (c *inputs) ugly() []result {
	var mu sync.Mutex
	var got []string
	c.start(c.name, bus.EndpointOptions{Concurrency: 1}, bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ note) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, ctx.Info().Header(uglyText))
		return nil
	}))
	var results []result
	for _, way := range c.ways() {
		if r := way.send(note{}, []saga.SendOption{saga.To(c.name),
			saga.WithHeader(uglyText, uglyText+"</script>")}); r.fate != "sent" {
			c.t.Errorf("%s: %+v", way.name, r)
		}
		c.untilEmpty(c.name)
		r := result{way: way.name, fate: "changed"}
		mu.Lock()
		if n := len(got); n > 0 && got[n-1] == uglyText+"</script>" {
			r.fate = "exactly"
		}
		got = nil
		mu.Unlock()
		results = append(results, r)
	}
	return results
}

func (c *inputs) uglyKey() []result {
	return c.toSaga(letter{body: encoded(opening{Key: uglyText, Text: strings.Repeat("\x01", 200_000)})})
}

// logged returns a bus that keeps its log, for an endpoint of the row.
func (c *inputs) logged() (*bus.Bus, func() string) {
	var mu sync.Mutex
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	b := c.newBus(bus.Options{Schema: c.schema, Logger: to})
	return b, func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// uglyLog lets Postgres refuse a COMMIT with an ugly text: the batch is rolled back, and the text is logged.
func (c *inputs) uglyLog() []result {
	c.exec(`CREATE TABLE edda.ugly (n int)`)
	c.exec(`CREATE FUNCTION edda.ugly_fails() RETURNS trigger
		LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION E''ugly k\r\n\x1b[2J\u202e''; END'`)
	c.exec(`CREATE CONSTRAINT TRIGGER ugly AFTER INSERT ON edda.ugly DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION edda.ugly_fails()`)
	b, log := c.logged()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	c.startOn(b, c.name, bus.EndpointOptions{Concurrency: 1, Poll: 10 * time.Millisecond, Policy: once},
		bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ note) error {
			_, err := tx.Exec(ctx, c.sql(`INSERT INTO edda.ugly VALUES (1)`))
			return err
		}))
	c.send(note{}, saga.To(c.name))
	c.untilEmpty(c.name)
	c.until("it is logged, which follows the commit", func() bool { return strings.Contains(log(), "ugly") })
	r := result{fate: "escaped"}
	if text := log(); strings.ContainsAny(text, "\r\x1b\u202e") || strings.Contains(text, "ugly k\n") {
		r.fate = "raw"
	}
	return []result{r}
}

func (c *inputs) newerLog() []result {
	b, log := c.logged()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	c.put(c.name, letter{kind: "input.note", header: `{"edda-version":"2"}`, body: secret})
	c.startOn(b, c.name, bus.EndpointOptions{Concurrency: 1, Poll: 10 * time.Millisecond},
		bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	c.until("it is put back", func() bool {
		return c.count(`SELECT count(*) FROM `+c.queue(c.name)+
			` WHERE first_failed IS NOT NULL AND attempt = 0`) == 1
	})
	c.until("it is logged", func() bool { return log() != "" })
	r := result{fate: "not logged", text: strings.TrimSpace(log())}
	if strings.Contains(r.text, "newer program") && strings.Contains(r.text, c.name) {
		r.fate = "logged"
	}
	return []result{r}
}

// alike tests keys that differ byte by byte, but look equal to a reader, a collation or a careless program.
func (c *inputs) alike() []result {
	c.install(c.name, bus.Saga(c.jars()))
	for _, key := range []string{"caf\u00e9", "cafe\u0301", "a", "A", "a ", "\u0430", "a\u200b"} {
		c.put(c.name, letter{kind: opening{}.Kind(), body: encoded(opening{Key: key})})
	}
	c.start(c.name, bus.EndpointOptions{Concurrency: 1}, bus.Saga(c.jars()))
	c.untilEmpty(c.name)
	return []result{{fate: c.text(`SELECT count(*) || ' instances' FROM edda.saga WHERE saga = $1`, c.name)}}
}
