package watermill

import (
	stdsql "database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/edda-go/edda/internal/base/option"
	"github.com/edda-go/edda/internal/base/pg"
)

//go:embed adapter.sql
var adapterStatements string

// SchemaAdapter lets the Publisher and Subscriber of watermill-sql write to and read from Edda's queues. The zero value
// is for the schema "edda". It works over lib/pq, pgx/stdlib and pgx itself, also in a transaction. It is safe for
// concurrent use.
//
// A topic is the queue of an endpoint, which must exist: run or install the endpoint, or let watermill-sql initialize
// its schema, which creates an empty queue. With Endpoint a publisher sends the messages of all its topics to that
// endpoint; that way it reaches a saga, whose kind is the topic. The limits are those of Publisher.Publish.
type SchemaAdapter struct {
	Schema    string   // "" is "edda"
	Endpoint  string   // gets the messages of every topic; "" is the topic
	Kind      KindFunc // of the messages that are published; nil is KindOf
	BatchSize int      // messages a subscriber takes in one transaction; 0 is 100, at most 10,000

	// Notify wakes Edda's workers at the commit of a Publish. Postgres commits transactions that notify one at a time,
	// in the whole cluster. Without Notify an idle worker finds the messages at its next poll.
	Notify bool
}

// OffsetsAdapter is the other half of SchemaAdapter, for the Subscriber of watermill-sql. Consumer groups are an error:
// give each group its own queue.
type OffsetsAdapter struct {
	Schema string // "" is "edda"
}

var (
	_ sql.SchemaAdapter  = SchemaAdapter{}
	_ sql.OffsetsAdapter = OffsetsAdapter{}
)

const (
	standardBatch = 100
	mostTaken     = 10_000 // the limit of the SQL function take
)

func adapterStatement(schema, name string) (string, pg.Schema, error) {
	parsed, err := pg.ParseSchema(schema)
	if err != nil {
		return "", parsed, err
	}
	return pg.Load(adapterStatements, parsed).Get(name), parsed, nil
}

// wireMessage is one element of the argument of send_all.
type wireMessage struct {
	ID     string            `json:"id,omitempty"`
	Kind   string            `json:"kind"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body"` // base64
}

// InsertQuery returns one statement for any number of messages. It fails for messages beyond these limits.
func (a SchemaAdapter) InsertQuery(p sql.InsertQueryParams) (sql.Query, error) {
	option.Default(&a.Endpoint, p.Topic)
	if err := checkTopic(a.Endpoint); err != nil {
		return sql.Query{}, err
	}
	kind := a.Kind
	if kind == nil {
		kind = KindOf
	}
	raws, err := toRaws(p.Topic, p.Msgs, kind)
	if err != nil {
		return sql.Query{}, err
	}
	wire := make([]wireMessage, len(raws))
	for n, raw := range raws {
		if err := raw.Check(); err != nil {
			return sql.Query{}, fmt.Errorf("publish to %s: message %d of %d: %w", p.Topic, n+1, len(raws), err)
		}
		wire[n] = wireMessage{Kind: raw.Name, Header: raw.Header, Body: raw.Body}
		if raw.Body == nil {
			wire[n].Body = []byte{}
		}
		if !raw.ID.IsZero() {
			wire[n].ID = raw.ID.String()
		}
	}
	text, err := json.Marshal(wire)
	if err != nil {
		return sql.Query{}, fmt.Errorf("publish to %s: %w", p.Topic, err)
	}
	query, schema, err := adapterStatement(a.Schema, "send_all")
	if err != nil {
		return sql.Query{}, err
	}
	var channel any
	if a.Notify {
		channel = schema.Channel()
	}
	return sql.Query{Query: query, Args: []any{a.Endpoint, string(text), channel}}, nil
}

// SelectQuery returns a statement that takes a batch and skips locked messages. It fails for a consumer group.
func (a SchemaAdapter) SelectQuery(p sql.SelectQueryParams) (sql.Query, error) {
	if err := errors.Join(checkTopic(p.Topic), checkGroup(p.ConsumerGroup)); err != nil {
		return sql.Query{}, err
	}
	var f option.Faults
	f.Int("BatchSize", &a.BatchSize, standardBatch, 1, mostTaken)
	if err := f.Err(); err != nil {
		return sql.Query{}, err
	}
	query, _, err := adapterStatement(a.Schema, "take")
	return sql.Query{Query: query, Args: []any{p.Topic, a.BatchSize}}, err
}

// claimed identifies a row for its deletion.
type claimed struct{ claim, id string }

const claimedKey = "edda"

// UnmarshalMessage reads one row of SelectQuery. An invalid header does not block the queue: the message has its text
// in the metadata edda_header.
func (a SchemaAdapter) UnmarshalMessage(p sql.UnmarshalMessageParams) (sql.Row, error) {
	var (
		row          sql.Row
		c            claimed
		kind         string
		header, body []byte
	)
	if err := p.Row.Scan(&row.Offset, &c.claim, &c.id, &kind, &header, &body); err != nil {
		return sql.Row{}, fmt.Errorf("read a message: %w", err)
	}
	row.Msg = message.NewMessage(c.id, body)
	var values map[string]json.RawMessage
	if err := json.Unmarshal(header, &values); err != nil {
		row.Msg.Metadata.Set("edda_header", strings.ToValidUTF8(string(header), "\uFFFD"))
	}
	for name, value := range values {
		text := string(value)
		if len(value) > 0 && value[0] == '"' {
			_ = json.Unmarshal(value, &text) // it is a JSON string, or the object would not have been read
		}
		switch {
		case name == uuidHeader:
			row.Msg.UUID = text
		case !strings.HasPrefix(name, "edda-"): // the others are the bus's
			row.Msg.Metadata.Set(name, text)
		}
	}
	row.Msg.Metadata.Set(KindKey, kind)
	row.UUID, row.Payload, row.Metadata = []byte(row.Msg.UUID), body, header
	row.ExtraData = map[string]any{claimedKey: c}
	return row, nil
}

// SchemaInitializingQueries returns the statement that creates the queue. It needs the right to create tables, once.
func (a SchemaAdapter) SchemaInitializingQueries(p sql.SchemaInitializingQueriesParams) ([]sql.Query, error) {
	if err := checkTopic(p.Topic); err != nil {
		return nil, err
	}
	option.Default(&a.Endpoint, p.Topic)
	query, _, err := adapterStatement(a.Schema, "create_queue")
	return []sql.Query{{Query: query, Args: []any{a.Endpoint}}}, err
}

// SubscribeIsolationLevel returns read committed: the row locks are enough.
func (a SchemaAdapter) SubscribeIsolationLevel() stdsql.IsolationLevel {
	return stdsql.LevelReadCommitted
}

// AckMessageQuery deletes the messages up to the last acked message, and no others: watermill-sql stops at the first
// message without an ack, and passes all messages that it had read.
func (a OffsetsAdapter) AckMessageQuery(p sql.AckMessageQueryParams) (sql.Query, error) {
	if err := checkGroup(p.ConsumerGroup); err != nil {
		return sql.Query{}, err
	}
	var claims, ids []string
	for _, row := range p.Rows {
		c, ok := row.ExtraData[claimedKey].(claimed)
		if !ok {
			return sql.Query{}, errors.New("the row was not read by Edda's SchemaAdapter: use both adapters together")
		}
		if row.Offset <= p.LastRow.Offset {
			claims, ids = append(claims, `"`+c.claim+`"`), append(ids, c.id)
		}
	}
	query, _, err := adapterStatement(a.Schema, "done")
	return sql.Query{Query: query, Args: []any{p.Topic, "{" + strings.Join(claims, ",") + "}",
		"{" + strings.Join(ids, ",") + "}"}}, err
}

// ConsumedMessageQuery returns no statement: the row lock is the claim.
func (OffsetsAdapter) ConsumedMessageQuery(sql.ConsumedMessageQueryParams) (sql.Query, error) {
	return sql.Query{}, nil
}

// NextOffsetQuery returns no statement: a queue has no offsets.
func (OffsetsAdapter) NextOffsetQuery(sql.NextOffsetQueryParams) (sql.Query, error) {
	return sql.Query{}, nil
}

// SchemaInitializingQueries returns no statement: the queue is the only table.
func (OffsetsAdapter) SchemaInitializingQueries(sql.OffsetsSchemaInitializingQueriesParams) ([]sql.Query, error) {
	return nil, nil
}

// BeforeSubscribingQueries returns no statement, and an error for a consumer group.
func (OffsetsAdapter) BeforeSubscribingQueries(p sql.BeforeSubscribingQueriesParams) ([]sql.Query, error) {
	return nil, checkGroup(p.ConsumerGroup)
}

func checkGroup(group string) error {
	if group == "" {
		return nil
	}
	return fmt.Errorf("consumer group %.80q: a queue has no groups; give each group a queue of its own, or use this "+
		"package's Subscriber", group)
}
