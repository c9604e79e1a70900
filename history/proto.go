package history

import (
	"os"
	"time"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Proto is what the environment chooses: a layout A, B or C, and a level.
var Proto = struct {
	Layout, Level string
	Sample        byte
}{os.Getenv("HISTORY_LAYOUT"), os.Getenv("HISTORY_LEVEL"), sampleOf(os.Getenv("HISTORY_SAMPLE"))}

func sampleOf(s string) byte {
	if s == "10" {
		return 26
	}
	return 0
}

// On reports whether history is written.
func On() bool { return Proto.Layout != "" }

// Wanted reports whether a conversation is kept.
func Wanted(conversation saga.ID) bool {
	if Proto.Sample == 0 {
		return true
	}
	return conversation[15] < Proto.Sample
}

// Record is one transaction.
type Record struct {
	ID       saga.ID
	Endpoint string
	Versions []Version
	Messages []Message
	Outs     [][]saga.Outgoing
	page     page
}

// Reset makes it ready for the next.
func (r *Record) Reset() {
	r.ID = saga.ID{}
	clear(r.Versions)
	clear(r.Messages)
	clear(r.Outs)
	r.Versions, r.Messages, r.Outs = r.Versions[:0], r.Messages[:0], r.Outs[:0]
}

// Queue queues the rows.
func (r *Record) Queue(b *pgx.Batch, schema string, now time.Time) {
	if len(r.Messages) == 0 {
		return
	}
	if Proto.Layout == "C" {
		r.queueC(b, schema, now)
		return
	}
	r.queueRows(b, schema, now)
}

func (r *Record) queueC(b *pgx.Batch, schema string, now time.Time) {
	p := &r.page
	p.reset(now)
	for n := range r.Versions {
		p.instance(&r.Versions[n])
	}
	for n := range r.Messages {
		p.message(&r.Messages[n], r.Outs[n], Proto.Level == "bodies")
	}
	first, last := pg.UUIDs(), pg.UUIDs()
	spans(r.Messages, first, last)
	b.Queue(`insert into `+schema+`.history_c (id, slot, endpoint, messages, page) values ($1, (select slot from `+schema+`.ring where name = 'inbox'), $2, $3, $4)`,
		[16]byte(r.ID), r.Endpoint, len(r.Messages), p.buf)
	b.Queue(`insert into `+schema+`.history_span (first, last, page) select u.f, u.l, $3 from unnest($1::uuid[], $2::uuid[]) u(f, l)`,
		first, last, [16]byte(r.ID))
}

const spanMillis = 100

func millis(id saga.ID) int64 {
	return int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
}

// spans lists ranges of ids that are close to each other in time.
func spans(messages []Message, first, last *pg.Array) {
	var from, to saga.ID
	for n := range messages {
		id := messages[n].Info.ID
		switch {
		case n == 0:
			from, to = id, id
			continue
		case id.Compare(from) >= 0 && millis(id)-millis(from) <= spanMillis:
			if id.Compare(to) > 0 {
				to = id
			}
			continue
		case id.Compare(to) <= 0 && millis(to)-millis(id) <= spanMillis:
			from = id
			continue
		}
		first.UUID(from)
		last.UUID(to)
		from, to = id, id
	}
	first.UUID(from)
	last.UUID(to)
}

func (r *Record) queueRows(b *pgx.Batch, schema string, now time.Time) {
	iid, version, key, life := pg.UUIDs(), pg.BigInts(), pg.Texts(), pg.Ints()
	state, steps, conversation, id := pg.Byteas(), pg.Byteas(), pg.UUIDs(), pg.UUIDs()
	byInstance := make([][]int, len(r.Versions))
	for n := range r.Messages {
		if i := r.Messages[n].Instance; i >= 0 {
			byInstance[i] = append(byInstance[i], n)
		}
	}
	p := &r.page
	for n := range r.Versions {
		v := &r.Versions[n]
		iid.UUID(v.ID)
		version.BigInt(v.Version)
		key.Text(v.Key)
		life.Int(int(v.Life))
		if v.State == nil {
			state.Null()
		} else {
			state.Bytes(v.State)
		}
		p.reset(now)
		for _, m := range byInstance[n] {
			p.message(&r.Messages[m], r.Outs[m], Proto.Level == "bodies")
		}
		steps.Bytes(p.buf)
		info := r.Messages[byInstance[n][0]].Info
		c := info.ConversationID
		if c.IsZero() {
			c = info.ID
		}
		conversation.UUID(c)
		id.UUID(info.ID)
	}
	b.Queue(`insert into `+schema+`.history_r (at, iid, version, saga, key, life, endpoint, batch, session, state, steps, conversation, mid)
		select now(), u.iid, u.version, $1, u.key, u.life, $2, $3, $3, u.state, u.steps, u.conversation, u.mid
		from unnest($4::uuid[], $5::bigint[], $6::text[], $7::int[], $8::bytea[], $9::bytea[], $10::uuid[], $11::uuid[])
		u(iid, version, key, life, state, steps, conversation, mid)`,
		r.Versions[0].Saga, r.Endpoint, [16]byte(r.ID), iid, version, key, life, state, steps, conversation, id)
}

// Tables are those of a layout.
func Tables(schema, layout string) string {
	switch layout {
	case "C":
		return `alter table ` + schema + `.saga add column history uuid;
		create table ` + schema + `.history_c (id uuid not null, slot int not null, at timestamptz not null default now(), endpoint text not null, messages int not null, page bytea not null) with (autovacuum_vacuum_insert_threshold = -1, toast_tuple_target = 8160);
		alter table ` + schema + `.history_c alter page set storage external;
		create index on ` + schema + `.history_c (id);
		create table ` + schema + `.history_span (first uuid not null, last uuid not null, page uuid not null);
		create index on ` + schema + `.history_span (last)`
	case "A", "B":
		sql := `create table ` + schema + `.history_r (at timestamptz not null, iid uuid not null, version bigint not null, saga text not null, key text not null, life int not null, endpoint text not null, batch uuid not null, session uuid not null, state bytea, steps bytea not null, conversation uuid not null, mid uuid not null) with (autovacuum_vacuum_insert_threshold = -1);`
		if layout == "A" {
			return sql + `create index on ` + schema + `.history_r (iid, version); create index on ` + schema + `.history_r (conversation)`
		}
		return sql + `create index on ` + schema + `.history_r using brin (iid uuid_bloom_ops, conversation uuid_bloom_ops, mid uuid_bloom_ops) with (pages_per_range = 32)`
	}
	return ""
}
