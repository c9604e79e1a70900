package outbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	benchIDs  = 500
	benchFill = 1_000_000
)

// One claim of 500 ids, with the three other slots of the ring empty, and with a million ids in each: of version 7,
// and in random order. The benchmark reports the fastest claim, because it is the least disturbed.
func BenchmarkInboxClaim(b *testing.B) {
	pool, schema := pgtest.Database(b)
	store := outbox.New(schema)
	exec := func(sql string, args ...any) {
		if _, err := pool.Exec(b.Context(), schema.Render(sql), args...); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		fill string // the id of the n-th row
		id   func() uuid.UUID
	}{
		{"empty", "", func() uuid.UUID { return uuid.Must(uuid.NewV7()) }},
		{"full-v7", `(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 400000000 * $1::int + n), 12, '0') ` +
			`|| '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14, 19))::uuid`,
			func() uuid.UUID { return uuid.Must(uuid.NewV7()) }},
		{"full-random", "gen_random_uuid()", uuid.New},
	} {
		exec(`TRUNCATE :schema.inbox`)
		for slot := 1; slot <= 3 && c.fill != ""; slot++ {
			exec(`INSERT INTO :schema.inbox (slot, source, id, sum) SELECT $1::int, 'a', `+c.fill+
				`, n FROM generate_series(1, $2::int) n`, slot, benchFill)
		}
		b.Run(c.name, func(b *testing.B) {
			conn, err := pool.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Release()
			var took []time.Duration
			for b.Loop() {
				given := make([]outbox.InboxEntry, benchIDs)
				for n := range given {
					given[n] = outbox.InboxEntry{ID: saga.ID(c.id()), Sum: 1}
				}
				pipeline := &pgx.Batch{}
				pipeline.Queue("begin")
				pipeline.Queue("SELECT set_config('plan_cache_mode', 'force_generic_plan', true), " +
					"set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)")
				store.NewInboxClaim("a", given).Queue(pipeline)
				pipeline.Queue("commit")
				begun := time.Now()
				if err := conn.SendBatch(b.Context(), pipeline).Close(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			b.ReportMetric(float64(slices.Min(took).Microseconds())/benchIDs, "best-µs/id")
		})
	}
}
