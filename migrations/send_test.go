package migrations_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
)

// letter has the arguments of send; nil leaves an argument to the function's default.
type letter struct {
	kind, body, header, endpoint, publish, id, due any
}

type sent struct {
	id        [16]byte
	copies    int
	duplicate bool
}

const sendSQL = `SELECT message_id, copies, duplicate
	FROM :schema.send($1::text, $2::bytea, $3::json, $4::text, $5::boolean, $6::uuid, $7::timestamptz)`

// queryer is implemented by pools, connections and transactions.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func (s *site) send(l letter) (sent, error) { return s.sendOn(pg.Committed(s.pool).Writing(), l) }

func (s *site) sendOn(q queryer, l letter) (r sent, err error) {
	err = q.QueryRow(s.Context(), s.schema.Render(sendSQL), l.kind, l.body, l.header, l.endpoint, l.publish, l.id,
		l.due).
		Scan(&r.id, &r.copies, &r.duplicate)
	return r, err
}

// place returns a message without faults.
func place() letter { return letter{kind: "order.place", body: []byte(`{"OrderID":"7"}`)} }

func (l letter) with(change func(*letter)) letter {
	change(&l)
	return l
}

type row struct {
	ID                 [16]byte
	Kind, Header, Body string
	Ready, NeverFailed bool
}

func (s *site) rows(endpoint string) []row {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), `SELECT id, kind, convert_from(header, 'UTF8') AS header,
		convert_from(body, 'UTF8') AS body,
		due <= clock_timestamp() AND due > clock_timestamp() - interval '1 minute' AS ready,
		first_failed IS NULL AND attempt = 0 AND conflict = 0 AND sent <= clock_timestamp() AS neverfailed
		FROM `+s.table(endpoint)+` ORDER BY due, id`)
	if err != nil {
		s.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		s.Fatal(err)
	}
	return all
}

func TestSendWritesOneRow(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{``, `weird"x y`, `we'ird`, `back\slash`, `%s %I`} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, suffix)
			got, err := s.send(place().with(func(l *letter) { l.header = `{"tenant":"ä \"b\""}` }))
			if err != nil {
				t.Fatal(err)
			}
			want := []row{{ID: got.id, Kind: "order.place", Header: `{"tenant":"ä \"b\""}`, Body: `{"OrderID":"7"}`,
				Ready: true, NeverFailed: true}}
			if diff := cmp.Diff(want, s.rows("orders")); diff != "" || got.copies != 1 || got.duplicate {
				t.Errorf("sent %+v, rows (-want +got):\n%s", got, diff)
			}
			if version := got.id[6] >> 4; version != 7 {
				t.Errorf("the id is a UUID of version %d, want 7", version)
			}
		})
	}
}

// A new id begins with the milliseconds of its creation, as in other implementations of UUIDv7.
func TestSendMakesIDsInOrderOfTime(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	before := one[int64](s, "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
	got, err := s.send(place())
	if err != nil {
		t.Fatal(err)
	}
	after := one[int64](s, "SELECT ceil(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
	var made int64
	for _, b := range got.id[:6] {
		made = made<<8 | int64(b)
	}
	if made < before || made > after || got.id[8]>>6 != 0b10 {
		t.Errorf("id %x says %d ms, want %d to %d, and variant 10", got.id, made, before, after)
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	const notStrings, argument = "flat JSON object of strings", "22023"
	for _, c := range []struct {
		name       string
		change     func(*letter)
		code, says string
	}{
		{"a header of a newer version", func(l *letter) { l.header = `{"edda-version":"2"}` }, argument,
			"edda-version must be 1"},
		{"a newer version, written otherwise", func(l *letter) { l.header = `{"a":"b","edda-versi\u006fn":"2"}` },
			argument, "edda-version must be 1"},
		{"a newer version behind this one", func(l *letter) { l.header = `{"edda-version":"2","edda-version":"1"}` },
			argument, "edda-version must be 1"},
		{"a newer version of an event", func(l *letter) {
			l.header, l.endpoint, l.publish = `{"edda-version":"2"}`, nil,
				true
		}, argument, "edda-version must be 1"},
		{"no kind", func(l *letter) { l.kind = nil }, argument, "kind must match"},
		{"an empty kind", func(l *letter) { l.kind = "" }, argument, "kind must match"},
		{"a kind with a capital", func(l *letter) { l.kind = "Order" }, argument, "kind must match"},
		{"a kind with an umlaut", func(l *letter) { l.kind = "örder" }, argument, "kind must match"},
		{"a kind with a line end", func(l *letter) { l.kind = "order.place\n" }, argument, "kind must match"},
		{"a kind of two lines", func(l *letter) { l.kind = "order.place\norder.place" }, argument, "kind must match"},
		{"a kind of 64 bytes", func(l *letter) { l.kind = strings.Repeat("k", 64) }, argument, "kind must match"},
		{"no body", func(l *letter) { l.body = nil }, argument, "body must be given"},
		{"a body over 1 MiB", func(l *letter) { l.body = make([]byte, 1<<20+1) }, argument, "at most 1048576 bytes"},
		{"the nil id", func(l *letter) { l.id = [16]byte{} }, argument, "nil UUID"},
		{"a header that is a string", func(l *letter) { l.header = `"x"` }, argument, notStrings},
		{"a header that is null", func(l *letter) { l.header = `null` }, argument, notStrings},
		{"a header that is an array", func(l *letter) { l.header = `[]` }, argument, notStrings},
		{"a number in the header", func(l *letter) { l.header = `{"a":"1","n":1}` }, argument, notStrings},
		{"a null in the header", func(l *letter) { l.header = `{"n":null}` }, argument, notStrings},
		{"an object in the header", func(l *letter) { l.header = `{"a":{"b":"c"}}` }, argument, notStrings},
		{"a header that is no JSON", func(l *letter) { l.header = `{"a":` }, "22P02",
			"invalid input syntax for type json"},
		{"a lone surrogate as value", func(l *letter) { l.header = `{"a":"\ud800"}` }, "22P02",
			"invalid input syntax for type json"},
		{"a lone surrogate as name", func(l *letter) { l.header = `{"\udc00":"a"}` }, "22P02",
			"invalid input syntax for type json"},
		{"a NUL as value", func(l *letter) { l.header = `{"a":"\u0000"}` }, "22P05",
			"unsupported Unicode escape sequence"},
		{"a NUL as name", func(l *letter) { l.header = `{"\u0000":"a"}` }, "22P05",
			"unsupported Unicode escape sequence"},
		{"65 headers", func(l *letter) { l.header = headers(65, 1) }, argument, "at most 64 entries"},
		{"a header over 8 KiB", func(l *letter) { l.header = headers(1, 8193) }, argument, "8 KiB each"},
		{"headers over 64 KiB", func(l *letter) { l.header = headers(9, 8000) }, argument, "64 KiB together"},
		{"a header of much space", func(l *letter) { l.header = "{" + strings.Repeat(" ", 1<<20) + "}" }, argument,
			notStrings},
		{"a name that looks like one of the bus", func(l *letter) { l.header = `{"edda-mine":""}` }, argument,
			"edda-mine: names that begin with edda- are the bus's own"},
		{"a name of the bus in capitals", func(l *letter) { l.header = `{"Edda-From":"orders"}` }, argument,
			"Edda-From: names that begin with edda-"},
		{"many names of the bus", func(l *letter) {
			l.header = `{"edda-from":"a"` +
				strings.Repeat(`,"edda-from":"a"`, 13) + `}`
		}, argument, "at most 13"},
		{"large names of the bus", func(l *letter) {
			l.header = `{"edda-from":"` + strings.Repeat("a", 5000) + `","edda-run":"` + strings.Repeat("a", 5000) +
				`"}`
		}, argument, "8 KiB together"},
		{"due never", func(l *letter) { l.due = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true} },
			argument, "due must be"},
		{"due before all time", func(l *letter) {
			l.due = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity,
				Valid: true}
		}, argument, "due must be"},
		{"due at the zero time", func(l *letter) { l.due = time.Time{} }, argument, "due must be"},
		{"due at the epoch", func(l *letter) { l.due = time.Unix(0, 0) }, argument, "due must be"},
		{"due in eleven years", func(l *letter) { l.due = time.Now().AddDate(11, 0, 0) }, argument, "within 10 years"},
		{"published to one endpoint", func(l *letter) { l.publish, l.endpoint = true, "orders" }, argument,
			"leave out the endpoint"},
		{"nobody consumes it", func(l *letter) { l.kind = "order.lost" }, "ED002", "no endpoint consumes order.lost"},
		{"two consume it", func(l *letter) { l.kind = "order.paid" }, "ED003", "several endpoints consume " +
			"order.paid: audit, mail"},
		{"no such endpoint", func(l *letter) { l.endpoint = "nowhere" }, "ED002", "there is no endpoint nowhere"},
		{"an empty endpoint", func(l *letter) { l.endpoint = "" }, "ED002", "there is no endpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.send(place().with(c.change))
			if err == nil {
				t.Fatalf("sent %+v", got)
			}
			if pgerr.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got  %v\nwant %s saying %q", err, c.code, c.says)
			}
		})
	}
	for _, endpoint := range []string{"orders", "mail", "audit"} {
		if n := s.count(endpoint); n != 0 {
			t.Errorf("%s has %d messages, want none", endpoint, n)
		}
	}
}

func headers(n, length int) string {
	all := map[string]string{}
	for i := range n {
		all["h"+string(rune('a'+i))] = strings.Repeat("x", length)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A message at a limit passes, and is stored byte for byte.
func TestSendKeepsBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	for name, l := range map[string]letter{
		"every byte":        {body: everyByte},
		"an empty body":     {body: []byte{}},
		"1 MiB":             {body: make([]byte, 1<<20)},
		"escapes":           {body: []byte{'x'}, header: `{"a":"\u00e4\ud83d\ude00\\u0000\/\n"}`},
		"text":              {body: []byte{'x'}, header: `{"a":"ä😀","":"","same":"1","same":"2"}`},
		"space":             {body: []byte{'x'}, header: " {\n\t\"a\" : \"b\" } "},
		"an empty object":   {body: []byte{'x'}, header: `{ }`},
		"64 headers":        {body: []byte{'x'}, header: headers(64, 1000)},
		"a header of 8 KiB": {body: []byte{'x'}, header: headers(1, 8192)},
	} {
		t.Run(name, func(t *testing.T) {
			l.kind = "order.place"
			got, err := s.send(l)
			if err != nil {
				t.Fatal(err)
			}
			header := l.header
			if header == nil {
				header = "{}"
			}
			body := one[[]byte](s, "SELECT body FROM "+s.table("orders")+" WHERE id = $1", got.id)
			stored := one[string](s, "SELECT convert_from(header, 'UTF8') FROM "+s.table("orders")+" WHERE id = $1",
				got.id)
			if diff := cmp.Diff(l.body, body); diff != "" {
				t.Errorf("body (-sent +stored):\n%s", diff)
			}
			if diff := cmp.Diff(header, stored); diff != "" {
				t.Errorf("header (-sent +stored):\n%s", diff)
			}
		})
	}
}

func TestSendToAnEndpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, kind := range []string{"order.paid", "order.lost"} { // two consumers, and no consumer
		if _, err := s.send(letter{kind: kind, body: []byte("{}"), endpoint: "mail"}); err != nil {
			t.Fatal(err)
		}
	}
	if mail, audit := s.count("mail"), s.count("audit"); mail != 2 || audit != 0 {
		t.Errorf("mail has %d, audit %d, want 2 and 0", mail, audit)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	newSite(t, "").publishes()
}

// The caller's session decides how a literal with a backslash in a function's body is read: headers were broken.
func TestPublishWhateverLiteralsMean(t *testing.T) {
	t.Parallel()
	s := newSite(t, `\'n`)
	config := s.pool.Config()
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "off"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	owner := s.pool
	t.Cleanup(func() { pool.Close(); s.pool = owner })
	s.pool = pool
	if got := one[string](s, "SHOW standard_conforming_strings"); got != "off" {
		t.Fatalf("the setting is %s", got)
	}
	s.publishes()
	for _, call := range []string{
		`SELECT :schema.send_all('orders', '[{"kind":"order.place","header":{"a":"b"},"body":"e30="}]')`,
		`SELECT :schema.done('orders', array_agg(t.claim), array_agg(t.message_id)) FROM :schema.take('orders', 10) t`,
		`SELECT :schema.received('somewhere', 'an id')`, `SELECT :schema.set_limit('orders', 2)`,
		`SELECT :schema.rotate_ring('inbox')`,
		`SELECT :schema.create_queue('another')`,
	} {
		s.exec(call)
	}
}

func (s *site) publishes() {
	t := s.T
	for _, c := range []struct {
		kind, header, stored string
		copies               int
	}{
		{"order.lost", `{}`, ``, 0},
		{"order.place", `{}`, `{"edda-intent":"publish"}`, 1},
		{"order.paid", `{}`, `{"edda-intent":"publish"}`, 2},
		{"order.paid", ` { } `, `{"edda-intent":"publish"} `, 2},
		{"order.paid", ` {"a":"b\\1"}`, `{"edda-intent":"publish","a":"b\\1"}`, 2},
		{"order.paid", `{ "edda-intent":"reply" }`, `{ "edda-intent":"reply" }`, 2},
	} {
		got, err := s.send(letter{kind: c.kind, body: []byte("{}"), header: c.header, publish: true})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if got.copies != c.copies {
			t.Errorf("%+v: %d copies", c, got.copies)
		}
		if c.copies == 0 {
			continue
		}
		endpoint := map[string]string{"order.place": "orders", "order.paid": "audit"}[c.kind]
		stored := one[string](s, "SELECT convert_from(header, 'UTF8') FROM "+s.table(endpoint)+" WHERE id = $1", got.id)
		if stored != c.stored {
			t.Errorf("%s: header %q was stored as %q, want %q", c.kind, c.header, stored, c.stored)
		}
	}
	if mail, audit := s.count("mail"), s.count("audit"); mail != 4 || audit != 4 {
		t.Errorf("mail has %d, audit %d, want 4 each", mail, audit)
	}
}

func TestSendWithAnID(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	id := [16]byte{1, 2, 3}
	first := place().with(func(l *letter) { l.id = id })
	for _, c := range []struct {
		name   string
		letter letter
		want   sent
		code   string
	}{
		{"the first", first, sent{id: id, copies: 1}, ""},
		{"the same", first, sent{id: id, duplicate: true}, ""},
		{"the same, later", first.with(func(l *letter) { l.due = time.Now().Add(time.Hour) }),
			sent{id: id, duplicate: true}, ""},
		{"another body", first.with(func(l *letter) { l.body = []byte(`{"OrderID":"8"}`) }), sent{}, "ED004"},
		{"another endpoint", first.with(func(l *letter) { l.endpoint = "mail" }), sent{}, "ED004"},
		{"another kind", first.with(func(l *letter) { l.kind, l.publish = "order.paid", true }), sent{}, "ED004"},
	} {
		got, err := s.send(c.letter)
		if pgerr.Code(err) != c.code || err == nil && got != c.want {
			t.Errorf("%s: got %+v, %v\nwant %+v, %q", c.name, got, err, c.want, c.code)
		}
	}
	if n := s.count("orders"); n != 1 {
		t.Errorf("orders has %d messages, want 1", n)
	}
}

// A send that was rolled back may be repeated with its id.
func TestSendWithAnIDAfterARollback(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	tx := s.begin(pgx.ReadCommitted)
	again := place().with(func(l *letter) { l.id = [16]byte{9} })
	if _, err := s.sendOn(tx, again); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.send(again); err != nil || got.duplicate || got.copies != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSendIsDue(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for name, c := range map[string]struct {
		due      any
		from, to float64 // seconds from now
	}{
		"at once":             {nil, -60, 0},
		"in the past":         {time.Now().Add(-24 * time.Hour), -60, 0},
		"in an hour":          {time.Now().Add(time.Hour), 3540, 3600},
		"in almost ten years": {time.Now().AddDate(9, 11, 0), 9 * 365 * 86400, math.Inf(1)},
	} {
		got, err := s.send(place().with(func(l *letter) { l.due = c.due }))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if in := one[float64](s, "SELECT extract(epoch FROM due - clock_timestamp())::float8 FROM "+s.table("orders")+
			" WHERE id = $1", got.id); in < c.from || in > c.to {
			t.Errorf("%s: due in %v s, want %v to %v", name, in, c.from, c.to)
		}
	}
}

// NULL for an argument that has a default means the default, because drivers cannot omit an argument.
func TestSendTakesNullForDefaults(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	got, err := s.send(place())
	if err != nil || got.copies != 1 {
		t.Fatalf("all null: %+v, %v", got, err)
	}
	s.exec(`SELECT * FROM :schema.send(kind => 'order.place', body => convert_to('{"OrderID":"7"}', 'UTF8'))`)
	s.exec(`SELECT * FROM :schema.send('order.place', '\x7b7d', due => now() + interval '1 hour')`)
	s.exec(`SELECT * FROM :schema.send('order.place' COLLATE "POSIX", 'x', endpoint => 'orders' COLLATE "POSIX")`)
	if n := s.count("orders"); n != 4 {
		t.Errorf("orders has %d messages, want 4", n)
	}
}

// database/sql passes text for JSON and UUID, and uses prepared statements.
func TestSendThroughDatabaseSQL(t *testing.T) {
	t.Parallel()
	s := newSite(t, `weird"x y`)
	db := stdlib.OpenDBFromPool(s.pool)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := tx.PrepareContext(t.Context(), s.schema.Render(sendSQL))
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	for i := range 7 { // Postgres may change to a generic plan after the fifth
		var (
			id        string
			copies    int
			duplicate bool
		)
		err := prepared.QueryRowContext(t.Context(), "order.place", []byte("{}"), `{"i":"`+string(rune('0'+i))+`"}`,
			sql.NullString{}, false, nil, sql.NullTime{}).Scan(&id, &copies, &duplicate)
		if err != nil || len(id) != 36 || copies != 1 || duplicate {
			t.Fatalf("send %d: %q %d %v, %v", i, id, copies, duplicate, err)
		}
	}
	if n := s.count("orders"); n != 0 {
		t.Errorf("before the commit orders has %d messages", n)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := s.count("orders"); n != 7 {
		t.Errorf("after the commit orders has %d messages, want 7", n)
	}
}

// All of pgx's modes of execution pass the same arguments.
func TestSendInEveryMode(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		var id string
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			// pgx requires this for the simple protocol
			if _, err := tx.Exec(t.Context(), "SET LOCAL standard_conforming_strings = on"); err != nil {
				return err
			}
			return tx.QueryRow(t.Context(), s.schema.Render(sendSQL), mode,
				"order.place", []byte{0, 0xff}, `{"a":"ä"}`, nil, false, nil, time.Now()).Scan(&id, new(int), new(bool))
		})
		if err != nil {
			t.Errorf("%v: %v", mode, err)
			continue
		}
		if body := one[[]byte](s, "SELECT body FROM "+s.table("orders")+" WHERE id = $1", id); len(body) != 2 ||
			body[1] != 0xff {
			t.Errorf("%v: body is %x", mode, body)
		}
	}
}
