package operate_test

import (
	"os"
	"testing"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
)

// For a batch, Process is its server process, and Since is set if its role is the reader's. An expired lease is not
// listed, and a slot above a lowered limit is Draining.
func TestHolders(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	o, err := operate.New(pool, operate.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, pool, schema.Render(`INSERT INTO :schema.concurrency_limit (name, slots) VALUES ('named/a', 2),
		('named/b', 3)`))
	pgtest.Exec(t, pool, schema.Render(`INSERT INTO :schema.slot (name, no, enabled, epoch, holder, granted, expires)
		VALUES ('named/a', 1, true, 1, 'ann/1', now(), now() + interval '1 hour'),
		('named/a', 2, true, 1, 'bob/1', now(), now() - interval '1 second'),
		('named/a', 3, false, 1, 'cid/1', now() - interval '2 hours', now() + interval '1 hour'),
		('named/b', 1, true, 1, NULL, NULL, NULL), ('named/b', 2, true, 1, NULL, NULL, NULL)`))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), schema.Render(
		"SELECT FROM :schema.slot WHERE name = 'named/b' AND no = 2 FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	held, err := o.Limits().Holders(t.Context(), "")
	if err != nil || len(held) != 3 {
		t.Fatalf("%+v, %v", held, err)
	}
	if a := held[0]; a.Slot != 1 || a.Process != "ann/1" || a.Draining || a.Left <= 0 || a.Since.IsZero() {
		t.Errorf("%+v", a)
	}
	if c := held[1]; c.Slot != 3 || c.Name != "cid/1" || !c.Draining {
		t.Errorf("%+v", c)
	}
	if b := held[2]; b.Limit != "named/b" || b.Slot != 2 || b.Name != "" || b.Process == "" ||
		b.Since.IsZero() != (os.Getenv("EDDA_TEST_ROLE") != "") || !b.Until.IsZero() || b.Left != 0 {
		t.Errorf("%+v", b)
	}
	if one, err := o.Limits().Holders(t.Context(), "named/b"); err != nil || len(one) != 1 || one[0].Slot != 2 {
		t.Errorf("of one limit: %+v, %v", one, err)
	}
}
