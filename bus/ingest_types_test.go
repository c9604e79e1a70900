package bus_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// textCodec is a user's codec of a type, which supports only the text format.
type textCodec struct{ pgtype.Codec }

func (textCodec) FormatSupported(format int16) bool { return format == pgtype.TextFormatCode }

func (textCodec) PreferredFormat() int16 { return pgtype.TextFormatCode }

func (c textCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format != pgtype.TextFormatCode {
		return nil
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

func (c textCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format != pgtype.TextFormatCode {
		return nil
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

// The pool is a user's, and so are the types of its connections: Ingest over a connection leaves them unchanged.
func TestIngestLeavesTheTypesOfAConnectionAlone(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.queueOf("notes")
	config, err := pgxpool.ParseConfig(pgdev.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	pgtest.Become(config, w.role)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		for _, oid := range []uint32{pgtype.UUIDArrayOID, pgtype.TextArrayOID, pgtype.ByteaArrayOID,
			pgtype.TimestamptzArrayOID, pgtype.Int4ArrayOID} {
			array, _ := conn.TypeMap().TypeForOID(oid)
			conn.TypeMap().RegisterType(&pgtype.Type{Name: "mine", OID: oid, Codec: textCodec{array.Codec}})
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b, err := bus.New(pool, bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	id := newID(t).String()
	for range 2 {
		var got []pgtype.UUID
		if err := pool.QueryRow(t.Context(), `SELECT $1::uuid[]`, []string{id}).Scan(&got); err != nil ||
			len(got) != 1 || got[0].String() != id {
			t.Errorf("a type of the user's is read as %v: %v", got, err)
		}
		if _, err := b.Ingest(t.Context(), outbox.IngestOptions{From: "payments", Endpoint: "notes"},
			outbox.IngestMessage{ID: id, Kind: "order.paid", Header: map[string]string{"a": `{"\,NULL}`},
				Body: []byte(`{"\x00": "\\",NULL}`)}, outbox.IngestMessage{Kind: "No Kind"}); err != nil {
			t.Fatal(err)
		}
	}
	w.want(1, `SELECT count(*) FROM `+w.queue("notes")+` WHERE id = '`+id+`' AND convert_from(body, 'UTF8') = $1`,
		`{"\x00": "\\",NULL}`)
	w.want(2, `SELECT count(*) FROM edda.dead_letter WHERE kind = 'No Kind'`)
}
