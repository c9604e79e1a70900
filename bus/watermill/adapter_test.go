package watermill_test

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	base "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/bus/watermill"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// drivers are the ways by which watermill-sql connects to Postgres.
func drivers(w *world) map[string]sql.Beginner {
	w.Helper()
	all := map[string]sql.Beginner{"pgx": sql.BeginnerFromPgx(w.pool)}
	for _, name := range []string{"postgres", "pgx/stdlib"} {
		db, err := stdsql.Open(strings.TrimSuffix(name, "/stdlib"), pgdev.DSN(w))
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = db.Close() })
		all[name] = sql.BeginnerFromStdSQL(db)
	}
	return all
}

func (w *world) stockPublisher(db sql.ContextExecutor, a watermill.SchemaAdapter) *sql.Publisher {
	w.Helper()
	a.Schema = w.schema
	p, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: a}, nil)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *world) stockSubscriber(db sql.Beginner, o sql.SubscriberConfig) *sql.Subscriber {
	w.Helper()
	if o.SchemaAdapter == nil {
		o.SchemaAdapter = watermill.SchemaAdapter{Schema: w.schema}
		o.OffsetsAdapter = watermill.OffsetsAdapter{Schema: w.schema}
	}
	o.InitializeSchema = true
	o.PollInterval, o.ResendInterval = 5*time.Millisecond, time.Millisecond
	s, err := sql.NewSubscriber(db, o, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.Close() })
	return s
}

func receive(w *world, from <-chan *message.Message) *message.Message {
	w.Helper()
	select {
	case m, open := <-from:
		if !open {
			w.Fatal("the channel is closed")
		}
		return m
	case <-time.After(pgdev.Patience(20 * time.Second)):
		w.Fatal("no message came")
	}
	return nil
}

// A message from a stock publisher reaches a stock subscriber through Edda unchanged, with every driver.
func TestStockPublisherAndSubscriber(t *testing.T) {
	w := newWorld(t)
	for name, db := range drivers(w) {
		topic := strings.ReplaceAll(name, "/", "-")
		messages, err := w.stockSubscriber(db, sql.SubscriberConfig{}).Subscribe(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		sent := []*message.Message{
			message.NewMessage(base.NewUUID(), []byte(`{"a": 1}`)),
			message.NewMessage("any text \"quoted\"", []byte{0, 1, 255}),
			message.NewMessage("", nil),
		}
		sent[0].Metadata = message.Metadata{"x": "ä\n\\", watermill.KindKey: "order.place"}
		if err := w.stockPublisher(db, watermill.SchemaAdapter{Notify: true}).Publish(topic, sent...); err != nil {
			t.Fatal(err)
		}
		sent[1].Metadata.Set(watermill.KindKey, topic)
		sent[2].Metadata.Set(watermill.KindKey, topic)
		for _, want := range sent {
			got := receive(w, messages)
			if !got.Equals(want) {
				t.Errorf("%s: got %q %v %q, want %q %v %q", name, got.UUID, got.Metadata, got.Payload, want.UUID,
					want.Metadata, want.Payload)
			}
			got.Ack()
		}
		w.until("the queue is empty", func() bool { return w.left(topic) == 0 })
	}
}

// A stock publisher starts a saga, in a transaction of the caller's; the saga's messages reach a stock subscriber,
// whose write commits with the ack.
func TestStockPublisherIntoASagaAndOut(t *testing.T) {
	w := newWorld(t)
	db, err := stdsql.Open("pgx", pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// two workers may take the messages in a different order
	w.run("counters", bus.EndpointOptions{Concurrency: 1}, bus.Saga(counters))
	messages, err := w.stockSubscriber(sql.BeginnerFromStdSQL(db), sql.SubscriberConfig{}).Subscribe(t.Context(), "out")
	if err == nil {
		err = w.bus.InstallQueue(t.Context(), "out", counted{}.Kind())
	}
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := w.stockPublisher(sql.TxFromStdSQL(tx), watermill.SchemaAdapter{Endpoint: "counters", Notify: true})
	for n := range 3 {
		m := message.NewMessage(base.NewUUID(), fmt.Appendf(nil, `{"Key":"a","N":%d}`, n+1))
		if err := p.Publish("count.up", m); err != nil { // the topic is the kind
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	sums := ""
	for range 3 {
		m := receive(w, messages)
		sums += string(m.Payload) + m.Metadata.Get(watermill.KindKey)
		m.Ack()
	}
	if want := `{"Sum":1}counted{"Sum":3}counted{"Sum":6}counted`; sums != want {
		t.Errorf("the subscriber got %s, want %s", sums, want)
	}
}

type countUp struct {
	Key string
	N   int
}
type counted struct{ Sum int }

func (countUp) Kind() string { return "count.up" }
func (counted) Kind() string { return "counted" }

type counter struct{ Sum int }

func (c *counter) Up(ctx *saga.Context, m countUp) error {
	c.Sum += m.N
	ctx.Publish(counted{Sum: c.Sum})
	return nil
}

var counters = saga.Define("counter", saga.Options{},
	saga.StartedBy(func(m countUp) string { return m.Key }, (*counter).Up))

// ackOne publishes ten messages through adapters, acks the first and lets the deadline of the second pass. It returns
// when the stock subscriber has committed the result.
func ackOne(w *world, topic string, schema sql.SchemaAdapter, offsets sql.OffsetsAdapter) {
	w.Helper()
	db := sql.BeginnerFromPgx(w.pool)
	deadline := 50 * time.Millisecond
	s := w.stockSubscriber(db, sql.SubscriberConfig{SchemaAdapter: schema, OffsetsAdapter: offsets,
		AckDeadline: &deadline})
	if err := s.SubscribeInitialize(topic); err != nil {
		w.Fatal(err)
	}
	p, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: schema}, nil)
	if err != nil {
		w.Fatal(err)
	}
	ten := make([]*message.Message, 10)
	for n := range ten {
		ten[n] = message.NewMessage(base.NewUUID(), fmt.Append(nil, n))
	}
	if err := p.Publish(topic, ten...); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	messages, err := s.Subscribe(ctx, topic)
	if err != nil {
		w.Fatal(err)
	}
	receive(w, messages).Ack()
	second := receive(w, messages)
	<-second.Context().Done() // the deadline has passed; the subscriber now acks the acked messages
	select {
	case m := <-messages: // the next batch, if a message is left: so the first has committed
		m.Nack()
	case <-time.After(time.Second):
	}
	cancel()
	if err := s.Close(); err != nil {
		w.Fatal(err)
	}
}

// Our adapter deletes the acked messages. Watermill-sql 4.1.2's own queue adapter deletes all messages that it had
// read: that is why ours uses LastRow. If the second half of this test fails, Watermill has corrected it.
func TestOnlyAckedMessagesAreDeleted(t *testing.T) {
	w := newWorld(t)
	ackOne(w, "ours", watermill.SchemaAdapter{Schema: w.schema}, watermill.OffsetsAdapter{Schema: w.schema})
	if left := w.left("ours"); left != 9 {
		t.Errorf("ours: published 10, acked 1, left %d, want 9", left)
	}
	table := func(topic string) string { return `"` + w.schema + `"."theirs"` }
	ackOne(w, "theirs", sql.PostgreSQLQueueSchema{GenerateMessagesTableName: table},
		sql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true, GenerateMessagesTableName: table})
	var left int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table("")).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 0 {
		t.Errorf("theirs: published 10, acked 1, left %d; it was 0 (9 lost) in 4.1.2", left)
	}
}

// Two stock subscribers take from a queue at the same time: with the stock adapter one waits for the other.
func TestStockSubscribersShareAQueue(t *testing.T) {
	w := newWorld(t)
	db := sql.BeginnerFromPgx(w.pool)
	adapter := watermill.SchemaAdapter{Schema: w.schema, BatchSize: 1}
	config := sql.SubscriberConfig{SchemaAdapter: adapter, OffsetsAdapter: watermill.OffsetsAdapter{Schema: w.schema}}
	one, err := w.stockSubscriber(db, config).Subscribe(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	two, err := w.stockSubscriber(db, config).Subscribe(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.stockPublisher(db, watermill.SchemaAdapter{}).Publish("shared", message.NewMessage("1", nil),
		message.NewMessage("2", nil)); err != nil {
		t.Fatal(err)
	}
	first, second := receive(w, one), receive(w, two) // both in hand at a time
	if first.UUID == second.UUID {
		t.Errorf("both got %s", first.UUID)
	}
	first.Ack()
	second.Ack()
	w.until("the queue is empty", func() bool { return w.left("shared") == 0 })
}

func TestAdaptersRefuse(t *testing.T) {
	w := newWorld(t)
	a, o := watermill.SchemaAdapter{Schema: w.schema}, watermill.OffsetsAdapter{Schema: w.schema}
	wrong := message.NewMessage("1", nil)
	wrong.Metadata.Set("edda-from", "me")
	group := sql.SelectQueryParams{Topic: "a", ConsumerGroup: "g"}
	for what, err := range map[string]error{
		"cannot name an Edda queue": second(a.InsertQuery(sql.InsertQueryParams{Topic: "Orders"})),
		"reserved": second(
			a.InsertQuery(sql.InsertQueryParams{Topic: "a", Msgs: message.Messages{wrong}})),
		"is nil": second(
			a.InsertQuery(sql.InsertQueryParams{Topic: "a", Msgs: message.Messages{nil}})),
		"a queue of its own": second(a.SelectQuery(group)),
		"BatchSize is -1": second(
			watermill.SchemaAdapter{BatchSize: -1}.SelectQuery(sql.SelectQueryParams{Topic: "a"})),
		"BatchSize is 10001": second(
			watermill.SchemaAdapter{BatchSize: 10_001}.SelectQuery(sql.SelectQueryParams{Topic: "a"})),
		"both adapters together": second(
			o.AckMessageQuery(sql.AckMessageQueryParams{Topic: "a", Rows: []sql.Row{{}}})),
		"reserved by Postgres": second(
			watermill.SchemaAdapter{Schema: "pg_x"}.InsertQuery(sql.InsertQueryParams{Topic: "a"})),
		"there is no endpoint nobody": w.stockPublisher(sql.BeginnerFromPgx(w.pool), a).Publish("nobody",
			message.NewMessage("1", nil)),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q is not said: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// row is a Scanner over values.
type row []any

func (r row) Scan(to ...any) error {
	for n, place := range to {
		switch place := place.(type) {
		case *int64:
			*place = r[n].(int64)
		case *string:
			*place = r[n].(string)
		case *[]byte:
			*place = []byte(r[n].(string))
		}
	}
	return nil
}

// A header that no Edda program wrote must not block a queue.
func TestUnmarshalReadsAnyHeader(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		`{}`:                             `{"edda_kind":"k"}`,
		`{"a":"b","edda-from":"orders"}`: `{"a":"b","edda_kind":"k"}`,
		`{"a":1,"b":{"c":null}}`:         `{"a":"1","b":"{\"c\":null}","edda_kind":"k"}`,
		"no header\xff":                  `{"edda_header":"no header` + "\uFFFD" + `","edda_kind":"k"}`,
	} {
		got, err := watermill.SchemaAdapter{}.UnmarshalMessage(
			sql.UnmarshalMessageParams{Row: row{int64(1), "(0,1)", "an id", "k", header, "body"}})
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(got.Msg.Metadata); string(text) != want {
			t.Errorf("%s became %s, want %s", header, text, want)
		}
	}
}
