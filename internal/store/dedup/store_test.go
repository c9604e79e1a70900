package dedup_test

import (
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/dedup"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
)

// The SQL function send and this package write the same ids: an id that one sent is a duplicate for the other.
func TestSumMeetsTheSQLFunction(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := dedup.New(schema)
	if _, err := pgtest.Pool(t).Exec(t.Context(), schema.Render("SELECT :schema.create_queue('orders')")); err != nil {
		t.Fatal(err)
	}
	bodies := []string{"", "{}", `{"a":"ä \u0000"}`, "\x00\xff\n", "\n\n"}
	for n, body := range bodies {
		id := saga.ID{byte(n + 1)}
		var duplicate bool
		send := schema.Render("SELECT duplicate FROM :schema.send(kind => $1, body => $2, endpoint => $3, id => $4)")
		err := pool.QueryRow(t.Context(), send, "order.place", []byte(body), "orders", [16]byte(id)).Scan(&duplicate)
		if err != nil || duplicate {
			t.Fatalf("send %q: duplicate %t, %v", body, duplicate, err)
		}
		tx := begin(t, pool)
		want(t, "claim what SQL sent", claim(t, store, tx,
			dedup.Given{ID: id, Sum: dedup.Sum("order.place", "orders", []byte(body))},
			dedup.Given{ID: id, Sum: dedup.Sum("order.place", "", []byte(body))},
			dedup.Given{ID: id, Sum: dedup.Sum("order.placed", "orders", []byte(body))},
		), dedup.Duplicate, dedup.Conflict, dedup.Conflict)

		id = saga.ID{0xff, byte(n)}
		want(t, "claim first", claim(t, store, tx,
			dedup.Given{ID: id, Sum: dedup.Sum("order.place", "orders", []byte(body))}), dedup.Fresh)
		commit(t, tx)
		err = pool.QueryRow(t.Context(), send, "order.place", []byte(body), "orders", [16]byte(id)).Scan(&duplicate)
		if err != nil || !duplicate {
			t.Errorf("send what was claimed for %q: duplicate %t, %v", body, duplicate, err)
		}
		if err = pool.QueryRow(t.Context(), send, "order.place", []byte(body+" "), "orders",
			[16]byte(id)).Scan(&duplicate); pgerr.Code(err) != "ED004" {
			t.Errorf("send another body under a claimed id: %v, want ED004", err)
		}
	}
}

func TestPruneIsBoundedAndPassesHeldRows(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := dedup.New(schema)
	fill := schema.Render(`INSERT INTO :schema.sent_id (id, sum, at)
		SELECT gen_random_uuid(), '', now() - CASE WHEN n <= 10 THEN interval '8 days' ELSE interval '1 day' END
		FROM generate_series(1, 25) n`)
	if _, err := pool.Exec(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	holder := begin(t, pool)
	if _, err := holder.Exec(t.Context(), schema.Render("SELECT FROM :schema.sent_id WHERE at < now() - interval "+
		"'7 days' LIMIT 3 FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	for _, expected := range []int64{4, 3, 0} {
		n, err := store.Prune(t.Context(), pool, 7*24*time.Hour, 4)
		if err != nil || n != expected {
			t.Fatalf("prune: %d rows, %v; want %d", n, err, expected)
		}
	}
	commit(t, holder)
	if n, err := store.Prune(t.Context(), pool, 7*24*time.Hour, 4); err != nil || n != 3 {
		t.Errorf("prune what was held: %d rows, %v; want 3", n, err)
	}
}

// A plan made while the table was empty must still be good after it has filled.
func TestClaimNeverReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	ids := `{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}`
	pgtest.Probes{
		SQL: dedup.Statements(dedup.New(schema)), MaxRows: 2,
		// They run under the settings of a program's transaction: a plan made after vacuum has found the table empty
		// reads the whole table until the next ANALYZE.
		Unvacuumed: true,
		Statements: map[string][]string{"claim": {ids, `{"\\x01","\\x02"}`}, "sums": {ids}, "forget": {ids}},
		Fill: `INSERT INTO :schema.sent_id (id, sum)
			SELECT lpad(to_hex(n), 32, '0')::uuid, '' FROM generate_series(1, 20000) n`,
	}.Check(t, pool, schema)
	pool, schema = pgtest.Database(t) // new, because the server may have counted rolled-back rows in the old one
	pgtest.Probes{
		SQL: dedup.Statements(dedup.New(schema)), MaxRows: 2, PlannedAnew: true,
		Statements: map[string][]string{"prune": {"604800", "1000"}},
		Fill: `INSERT INTO :schema.sent_id (id, sum)
			SELECT gen_random_uuid(), '' FROM generate_series(1, 20000)`,
	}.Check(t, pool, schema)
}
