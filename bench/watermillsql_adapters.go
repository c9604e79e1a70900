package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	wmsg "github.com/ThreeDotsLabs/watermill/message"
)

// watermillAdapters are the statements watermill-sql asks for: a queue whose subscribers skip what another one holds.
// The adapters that come with the library lock without skipping, so that subscribers would take turns.
type watermillAdapters struct {
	batch     int
	take, ack string
	insert    map[string]string // by topic
}

func newWatermillAdapters(schema string, batch int) watermillAdapters {
	text := statements(watermillSQL, schema)
	return watermillAdapters{batch: batch, take: text["take"], ack: text["ack"], insert: map[string]string{
		"sink": strings.ReplaceAll(text["insert"], ":topic", "sink"),
	}}
}

func (a watermillAdapters) InsertQuery(p wsql.InsertQueryParams) (wsql.Query, error) {
	if len(p.Msgs) != 1 {
		return wsql.Query{}, fmt.Errorf("publish %d messages: one at a time", len(p.Msgs))
	}
	m := p.Msgs[0]
	metadata, err := json.Marshal(m.Metadata)
	return wsql.Query{Query: a.insert[p.Topic], Args: []any{m.UUID, []byte(m.Payload), metadata}}, err
}

func (a watermillAdapters) SelectQuery(wsql.SelectQueryParams) (wsql.Query, error) {
	return wsql.Query{Query: a.take, Args: []any{a.batch}}, nil
}

func (watermillAdapters) UnmarshalMessage(p wsql.UnmarshalMessageParams) (wsql.Row, error) {
	var r wsql.Row
	var id string
	if err := p.Row.Scan(&r.Offset, &id, &r.Payload, &r.Metadata); err != nil {
		return r, err
	}
	r.Msg = wmsg.NewMessage(id, r.Payload)
	return r, json.Unmarshal(r.Metadata, &r.Msg.Metadata)
}

func (watermillAdapters) SchemaInitializingQueries(wsql.SchemaInitializingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

func (watermillAdapters) SubscribeIsolationLevel() sql.IsolationLevel { return sql.LevelReadCommitted }

// watermillOffsets deletes what was acknowledged.
type watermillOffsets struct{ watermillAdapters }

// AckMessageQuery deletes no further than the last acknowledged row: watermill-sql names all rows that were taken.
func (o watermillOffsets) AckMessageQuery(p wsql.AckMessageQueryParams) (wsql.Query, error) {
	var offsets []int64
	for _, row := range p.Rows {
		offsets = append(offsets, row.Offset)
		if row.Offset == p.LastRow.Offset {
			break
		}
	}
	return wsql.Query{Query: o.ack, Args: []any{offsets}}, nil
}

func (watermillOffsets) ConsumedMessageQuery(wsql.ConsumedMessageQueryParams) (wsql.Query, error) {
	return wsql.Query{}, nil
}

func (watermillOffsets) NextOffsetQuery(wsql.NextOffsetQueryParams) (wsql.Query, error) {
	return wsql.Query{}, nil
}

func (watermillOffsets) SchemaInitializingQueries(wsql.OffsetsSchemaInitializingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

func (watermillOffsets) BeforeSubscribingQueries(wsql.BeforeSubscribingQueriesParams) ([]wsql.Query, error) {
	return nil, nil
}

// watermillErrors is a logger: a subscriber logs what goes wrong and tries again, and a benchmark must not.
type watermillErrors struct {
	watermill.NopLogger
	first chan error
}

func (w watermillErrors) Error(what string, err error, _ watermill.LogFields) {
	select {
	case w.first <- fmt.Errorf("%s: %w", what, err):
	default:
	}
}

func (w watermillErrors) With(watermill.LogFields) watermill.LoggerAdapter { return w }
