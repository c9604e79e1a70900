package house

import (
	"context"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const person, personKey = "ann.who.leaves@example.org", "4711"

type signUp struct{ ID, Email string }
type remindByMail struct{ Email string }
type refuseMail struct{ Email string }
type signedUp struct{ Email string }

func (signUp) Kind() string       { return "person.sign-up" }
func (remindByMail) Kind() string { return "person.remind" }
func (refuseMail) Kind() string   { return "person.refuse" }

func (s *signedUp) begin(_ *saga.Context, m signUp) error { s.Email = m.Email; return nil }

// After the steps on the page no column of any table has the person's data.
func TestOnePersonIsForgotten(t *testing.T) {
	t.Parallel()
	ctx, pool, schema := t.Context(), pgdev.Pool(t), pgdev.Schema(t)
	pgtest.Migrate(t, pool, schema)
	waiting := putEverywhere(t, pool, schema)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	before := whereIs(t, pool, schema, person)
	for _, table := range []string{"audit", "dead_letter", "dead_letter_edit", "history", "outbox", "queue_", "record",
		"run", "saga", "saga_item"} {
		if !slices.ContainsFunc(before, func(found string) bool { return strings.HasPrefix(found, table) }) {
			t.Errorf("the person is not in %s, so nothing is seen of it being deleted: %v", table, before)
		}
	}
	op, err := operate.New(pool, operate.Options{Schema: schema})
	must(err)
	living, err := op.Instances().End(ctx,
		operate.Target{Saga: "person", Key: personKey, Version: 2, Reason: "asked to"})
	if must(err); living.Version != 2 {
		t.Errorf("ended %+v", living)
	}
	_, err = op.Messages().Cancel(ctx, "people", waiting, "asked to")
	must(err)
	letters, err := op.DeadLetters().List(ctx, recoverability.LetterFilter{})
	must(err)
	for _, l := range letters {
		must(op.DeadLetters().Discard(ctx, l.Number, "asked to"))
	}
	items, err := persistence.NewItems[string](schema, "mails")
	must(err)
	_, err = items.Clear(ctx, pool, personKey)
	must(err)
	records, err := persistence.NewRecords[string](schema, "mails")
	must(err)
	record, err := records.Get(ctx, pool, personKey)
	must(err)
	must(records.Delete(ctx, pool, record))
	for _, block := range []string{"erase", "empty"} {
		_, err := pool.Exec(ctx, securitySQL(t, block, schema))
		must(err)
	}
	if after := whereIs(t, pool, schema, person); len(after) != 0 {
		t.Errorf("the person is still in %v", after)
	}
}

// securitySQL returns a block of the page for this schema and the person.
func securitySQL(t *testing.T, name, schema string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```sql\n-- " + name + "\n(.*?)```").FindStringSubmatch(read(t,
		"docs/operate/security.md"))
	if block == nil {
		t.Fatalf("docs/operate/security.md has no block %q", name)
	}
	return strings.NewReplacer("edda.", pgx.Identifier{schema}.Sanitize()+".", ":'person'", pg.Literal(person),
		":'key'", pg.Literal(personKey), ":'saga'", pg.Literal("person")).Replace(block[1])
}

// whereIs lists the tables with a row that has the text, as text or as bytes.
func whereIs(t *testing.T, pool *pgxpool.Pool, schema, text string) (found []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT relname FROM pg_class WHERE relkind = 'r' AND "+
		"relnamespace = $1::regnamespace ORDER BY 1", pgx.Identifier{schema}.Sanitize())
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var has bool
		err := pool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+pgx.Identifier{schema, table}.Sanitize()+
			" t WHERE position($1 IN t::text) > 0 OR position($2 IN t::text) > 0)", text,
			hex.EncodeToString([]byte(text))).Scan(&has)
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if has {
			found = append(found, table)
		}
	}
	return found
}

// putEverywhere signs a person up, and returns a waiting message about the person.
func putEverywhere(t *testing.T, pool *pgxpool.Pool, schema string) (waiting saga.ID) {
	t.Helper()
	ctx, handled, dead := t.Context(), make(chan bool, 10), make(chan bool, 10)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := bus.New(pool, bus.Options{Schema: schema, History: history.Options{Level: history.Bodies},
		Events: func(e event.Event) {
			switch e.(type) {
			case event.Handled:
				handled <- true
			case event.DeadLettered:
				dead <- true
			}
		}})
	must(err)
	definition := saga.Define("person", saga.Options{},
		saga.StartedBy(func(m signUp) string { return m.ID }, (*signedUp).begin))
	refuse := func(*bus.Context, pgx.Tx, refuseMail) error { return saga.Permanent(errors.New("refused")) }
	remind := func(*bus.Context, pgx.Tx, remindByMail) error { return nil }
	people, err := bus.NewEndpoint(b, "people", bus.EndpointOptions{}, bus.Saga(definition), bus.HandleTx(refuse),
		bus.HandleTx(remind))
	must(err)
	must(people.Install(ctx))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- people.Run(running) }()
	_, err = b.Send(ctx, signUp{ID: personKey, Email: person})
	must(err)
	<-handled
	for range 2 {
		_, err = b.Send(ctx, refuseMail{Email: person})
		must(err)
		<-dead
	}
	op, err := operate.New(pool, operate.Options{Schema: schema})
	must(err)
	letters, err := op.DeadLetters().List(ctx, recoverability.LetterFilter{})
	must(err)
	edit := recoverability.Edit{Body: []byte(`{"Email": "` + person + `", "More": 1}`), Reason: "a test"}
	must(op.DeadLetters().Edit(ctx, letters[0].Number, edit))
	<-dead
	stop()
	must(<-ended)
	sent, err := b.Send(ctx, remindByMail{Email: person}, saga.Delay(time.Hour))
	must(err)
	_, _, err = op.Instances().Repair(ctx, operate.Target{Saga: "person", Key: personKey, Version: 1, Reason: "a test"},
		[]byte(`{"Email": "`+person+`", "Repaired": 1}`))
	must(err)
	items, err := persistence.NewItems[string](schema, "mails")
	must(err)
	_, err = items.Add(ctx, pool, personKey, "1", person)
	must(err)
	records, err := persistence.NewRecords[string](schema, "mails")
	must(err)
	_, err = records.Put(ctx, pool, personKey, person)
	must(err)
	of := pgx.Identifier{schema}.Sanitize() + "."
	pgtest.Exec(t, pool, "INSERT INTO "+of+"manifest (name, definition, kind, body) VALUES ('mails', '{}', "+
		"'person.remind', '')")
	pgtest.Exec(t, pool, "INSERT INTO "+of+"run (id, manifest_id, origin, state, due, ready, kind, body, ended) "+
		"SELECT gen_random_uuid(), id, 'manual', 'succeeded', now(), now(), 'person.remind', $1::bytea, now() "+
		"FROM "+of+"manifest", []byte(person))
	pgtest.Exec(t, pool, "INSERT INTO "+of+"outbox (slot, endpoint, relayed, id, kind, header, body) "+
		"SELECT slot, 'mails', now(), gen_random_uuid(), 'person.remind', '', $1::bytea FROM "+of+"ring "+
		"WHERE name = 'outbox'", []byte(person))
	return sent.ID
}
