package bus_test

import (
	"math"
	"runtime"
	"strings"
	"syscall"

	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
)

const (
	mebibyte = 1 << 20
	invalid  = secret + "\xff\xfe"
)

func raw(body string) saga.Raw { return saga.Raw{Name: "input.note", Body: []byte(body)} }

func text(n int) string { return strings.Repeat("x", n) }

// message is a row's input that is sent in all ways.
func message(m saga.Message, o ...saga.SendOption) func(*inputs) []result {
	return func(c *inputs) []result { return c.all(m, o...) }
}

func header(name, value string) func(*inputs) []result {
	return message(note{}, saga.WithHeader(name, value))
}

func option(o saga.SendOption) func(*inputs) []result { return message(note{}, o) }

func named(kind string) func(*inputs) []result { return message(saga.Raw{Name: kind}) }

func headers(n int, value string) (o []saga.SendOption) {
	for i := range n {
		o = append(o, saga.WithHeader("h"+strings.Repeat("i", i%100)+string(rune('a'+i/100%26))+string(
			rune('a'+i/2600)), value))
	}
	return o
}

func nested(depth int) string {
	return strings.Repeat(`{"Next":`, depth) + "null" + strings.Repeat("}", depth)
}

func loops(depth int) (l loop) {
	for range depth {
		inner := l
		l.Next = &inner
	}
	return l
}

// Inputs of senders.
var sentInputs = []badInput{
	{"B1", "a body with an escaped NUL", message(raw(`{"Text":"a\u0000b"}`)), fate("stored")},
	{"B1", "a text with a NUL", message(note{Text: "a\x00b"}), fate("stored")},
	{"B1", "a body of every byte", message(raw("\x00\x01\x7f\x80\xff" + text(300))), fate("stored")},
	{"B2", "a header value with NUL", header("trace", secret+"\x00"),
		refused(saga.ErrInvalidText, `header "trace"`, "7 bytes")},
	{"B2", "a header name with NUL", header(secret+"\x00", "x"), refused(saga.ErrInvalidText, "name of 7 bytes")},
	{"B2", "a kind with NUL", named("notice\x00"), refused(nil, `kind "notice\x00"`, "7 bytes", "byte 7")},
	{"B2", "an endpoint with NUL", option(saga.To("a" + secret + "\x00")), refused(nil, "To", "8 bytes", "1 to 63")},
	{"B3", "a text that is not UTF-8", message(note{Text: invalid}), refused(saga.ErrInvalidText, "encode input.note")},
	{"B3", "a header that is not UTF-8", header("trace", invalid),
		refused(saga.ErrInvalidText, `header "trace"`, "8 bytes")},
	{"B3", "a header name that is not UTF-8", header(invalid, "x"), refused(saga.ErrInvalidText, "name of 8 bytes")},
	{"B4", "a lone surrogate", message(raw(`{"Text":"\ud800"}`)), fate("stored")},
	{"B5", "what a decoder would change", message(
		raw(` {"N":9007199254740993, "f":1.10,"a":1,"A":2,"a":3, "z":0,"b":0} `)), fate("stored")},
	{"B6", "a number beyond every database", message(raw(`{"F":1e131072}`)), fate("stored")},
	{"B6", "NaN", message(note{F: math.NaN()}), refused(nil, "encode input.note", "NaN")},
	{"B6", "an infinity", message(note{F: math.Inf(-1)}), refused(nil, "encode input.note", "Inf")},
	{"B7", "bytes nested 20,000 deep", message(raw(nested(20_000))), fate("stored")},
	{"B7", "a value nested 999 deep", message(loops(999)), fate("stored")},
	{"B7", "a value nested 1,001 deep", message(loops(1001)),
		refused(nil, "encode input.loop", "nested deeper than 1000")},
	{"B8", "no body", message(saga.Raw{Name: "input.note"}), fate("stored")},
	{"B8", "a body of white space", message(raw(" \n\t")), fate("stored")},
	{"B8", "no message", message(nil), refused(nil, "nil")},
	{"B9", "a body of the limit", message(raw(text(mebibyte))), fate("stored")},
	{"B9", "a body of one byte more", message(raw(secret + text(mebibyte-5))),
		refused(saga.ErrTooLarge, "input.note", "1048577 bytes", "limit 1048576")},
	{"B9", "a text that makes the body too large", message(note{Text: secret + text(mebibyte)}),
		refused(saga.ErrTooLarge, "input.note", "limit 1048576")},
	{"B10", "a body of a gigabyte", (*inputs).gigabyte, refused(saga.ErrTooLarge, "1073741824 bytes", "limit 1048576")},
	{"B11", "64 headers", message(note{}, headers(64, "x")...), fate("stored")},
	{"B11", "64 headers of 64 KiB together, published", (*inputs).publishedHeaders, fate("sent")},
	{"B11", "65 headers", message(note{}, headers(65, secret)...), refused(saga.ErrTooLarge, "65 headers", "limit 64")},
	{"B11", "10,000 headers", message(note{}, headers(10_000, secret)...),
		refused(saga.ErrTooLarge, "10000 headers", "limit 64")},
	{"B11", "a header of 8 KiB", header("trace", text(8<<10)), fate("stored")},
	{"B11", "a header of 1 MiB", header("trace", secret+text(mebibyte-6)),
		refused(saga.ErrTooLarge, `header "trace"`, "1048576 bytes", "limit 8192")},
	{"B11", "a header name of 1 MiB", header(secret+text(mebibyte-6), "x"),
		refused(saga.ErrTooLarge, "name of 1048576 bytes", "limit 8192")},
	{"B11", "64 headers of 2 KiB", message(note{}, headers(64, secret+text(2000))...),
		refused(saga.ErrTooLarge, "bytes together", "limit 65536")},
	{"B11", "a header twice", message(note{}, saga.WithHeader("trace", "1"), saga.WithHeader("trace", secret)),
		refused(nil, `"trace" is given twice`)},
	{"B11", "a reserved header", header("edda-version", secret), refused(nil, `"edda-version"`, "reserved")},
	{"B11", "a reserved header in capitals", header("EDDA-Instance", secret), refused(nil, "reserved")},
	{"B11", "a header without a name", header("", secret), refused(nil, "empty name")},
	{"B12", "line ends, escapes and turned text in a header", header("a\r\nb\x1b[2J", "c\r\nd: e\x1b[31m\u202e\u2066f"),
		fate("stored")},
	{"B12", "such a name over the limit", message(note{}, saga.WithHeader("a\r\n\x1b[2J\u202e", secret+text(9000))),
		refused(saga.ErrTooLarge, `"a\r\n\x1b[2J\u202e"`)},
	{"B18", "SQL for a kind", named(`"; drop table notice;--`),
		refused(nil, "kind", "23 bytes", "byte 1", "1 to 63")},
	{"B18", "a schema of Postgres for a kind", named("pg_catalog"), fate("stored")}, // names never become identifiers
	{"B18", "a quote for a kind", named(`"`), refused(nil, "kind")},
	{"B18", "an apostrophe for a kind", named(`'`), refused(nil, "kind")},
	{"B18", "a verb for a kind", named("%s"), refused(nil, "kind")},
	{"B18", "a path for a kind", named("../notice"), refused(nil, `kind "../notice"`)},
	{"B18", "an emoji for a kind", named("a\U0001F4A3"), refused(nil, "kind", "byte 2")},
	{"B18", "a kind of no bytes", named(""), refused(nil, "kind", "0 bytes")},
	{"B18", "a kind of 63 bytes", named(text(63)), fate("stored")},
	{"B18", "a kind of 64 bytes", named(secret[:1] + text(63)), refused(nil, "kind", "64 bytes", "1 to 63")},
	{"B18", "SQL for an endpoint", option(saga.To(`x"; drop table ` + secret)), refused(nil, "To", "1 to 63")},
	{"B18", "a path for an endpoint", option(saga.To("../" + secret)), refused(nil, "To", "1 to 63")},
	{"B18", "an endpoint of 10 KB", option(saga.To(text(10_000))), refused(nil, "To", "10000 bytes", "1 to 63")},
	{"B19", "two kinds that are equal in 63 bytes", (*inputs).equalIn63, refused(nil, "64 bytes", "1 to 63")},
	{"B20", "a kind with a capital", named("input.Note"), refused(nil, "kind", "byte 7")},
	{"B20", "a kind with a composed umlaut", named("inp\u00fct"), refused(nil, "kind", "byte 4")},
	{"B20", "the same kind decomposed", named("inpu\u0308t"), refused(nil, "kind", "byte 5")},
	{"B20", "a kind with a space at its end", named("input.note "), refused(nil, "kind", "byte 11")},
}

// publishedHeaders: the header that marks an event does not count as a header of the caller's.
func (c *inputs) publishedHeaders() []result {
	o := headers(63, text(900))
	o = append(o, saga.WithHeader("rest", text(64<<10-len("rest")-headerBytes(o))))
	_, err := c.bus.Publish(c.t.Context(), loop{}, o...)
	tx, begin := c.db.BeginTx(c.t.Context(), nil)
	if begin != nil {
		c.t.Fatal(begin)
	}
	_, errSQL := c.bus.SQL(nil).PublishTx(c.t.Context(), tx, loop{}, o...)
	_ = tx.Rollback()
	return []result{refusal("Publish", err), refusal("PublishSQL", errSQL)}
}

func headerBytes(o []saga.SendOption) (n int) {
	rt := saga.Runtime{NewID: func() saga.ID { return saga.ID(uuid.New()) }}
	out, err := rt.Compose(saga.Event, loop{}, o...)
	if err != nil {
		panic(err)
	}
	for name, value := range out.Info.Headers() {
		n += len(name) + len(value)
	}
	return n
}

func (c *inputs) equalIn63() []result {
	return append(c.all(saga.Raw{Name: text(63) + "a"}), c.all(saga.Raw{Name: text(63) + "b"})...)
}

// gigabyte is refused without being copied. Its memory is mapped and was never written.
func (c *inputs) gigabyte() []result {
	body, err := syscall.Mmap(-1, 0, 1<<30, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(body) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results := c.all(saga.Raw{Name: "input.note", Body: body})
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
		c.t.Errorf("%d MiB were allocated to refuse it", grown>>20)
	}
	return results
}
