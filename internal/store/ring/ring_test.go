package ring_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/ring"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { os.Exit(pgdev.Main(m)) }

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	pgtest.Statements(t, pool, schema, "ring.sql")
}

type world struct {
	*testing.T
	pool   *pgxpool.Pool
	schema pg.Schema
	rings  *ring.Store
}

func open(t *testing.T) world {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	return world{t, pool, schema, ring.New(schema)}
}

func (w world) exec(sql string, args ...any) {
	w.Helper()
	pgtest.Exec(w, w.pool, w.schema.Render(sql), args...)
}

func (w world) rotate(want bool) {
	w.Helper()
	if rotated, err := w.rings.Rotate(w.Context(), w.pool, ring.History); rotated != want || err != nil {
		w.Errorf("rotated %v: %v, want %v", rotated, err, want)
	}
}

func (w world) info() ring.Info {
	w.Helper()
	all, err := w.rings.List(w.Context(), w.pool)
	if err != nil || len(all) != 3 || all[0].Ring != ring.History {
		w.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

func (w world) count() (n int) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), w.schema.Render(`SELECT (SELECT count(*) FROM :schema.history) +
		(SELECT count(*) FROM :schema.history_range) + (SELECT count(*) FROM :schema.history_life)`)).
		Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// fill writes a page of that many bytes into the slot in use, with the rows that belong to it.
func (w world) fill(bytes int) {
	w.Helper()
	w.exec(`WITH slot AS (SELECT slot FROM :schema.ring WHERE name = 'history'),
		range AS (INSERT INTO :schema.history_range SELECT slot, '`+id+`', '`+id+`', '`+id+`' FROM slot),
		life AS (INSERT INTO :schema.history_life (slot, iid, saga, key, outcome, page)
			SELECT slot, '`+id+`', 's', 'k', 'completed', '`+id+`' FROM slot)
		INSERT INTO :schema.history (slot, id, endpoint, messages, page)
		SELECT slot, '`+id+`', 'e', 1, decode(repeat('00', $1), 'hex') FROM slot`, bytes)
}

const id = "0198c0de-0000-7000-8000-000000000001"

// A slot is emptied in all tables of its ring, after three others were written.
func TestSlotsAreEmptiedInTurn(t *testing.T) {
	w := open(t)
	for turn, want := range []int{3, 6, 9, 9, 9} {
		w.fill(1)
		w.exec(`UPDATE :schema.ring SET since = now() - interval '1 year' WHERE name = 'history'`)
		w.rotate(true)
		if n := w.count(); n != want {
			t.Errorf("%d rows after rotation %d, want %d", n, turn+1, want)
		}
	}
}

// A ring with a size limit rotates when one slot has a quarter of it, and stays below the limit.
func TestRingThatIsLargeRotatesEarly(t *testing.T) {
	w := open(t)
	const most = 4 << 20
	if err := w.rings.SetMost(t.Context(), w.pool, ring.History, most); err != nil {
		t.Fatal(err)
	}
	w.rotate(false)
	rotations := 0
	for range 40 {
		w.fill(300 << 10)
		rotated, err := w.rings.Rotate(t.Context(), w.pool, ring.History)
		if err != nil {
			t.Fatal(err)
		}
		if rotated {
			rotations++
		}
		if i := w.info(); i.Most != most || i.Bytes > most+1<<20 {
			t.Fatalf("%+v after %d rotations", i, rotations)
		}
	}
	if rotations < 8 {
		t.Errorf("%d rotations while 12 MB were written into a ring of 4", rotations)
	}
	if err := w.rings.SetMost(t.Context(), w.pool, ring.History, 0); err != nil {
		t.Fatal(err)
	}
	w.fill(4 << 20)
	w.rotate(false)
	for _, bad := range []int64{-1, 1, 1<<20 - 1} {
		if err := w.rings.SetMost(t.Context(), w.pool, ring.History, bad); err == nil {
			t.Errorf("%d bytes were accepted", bad)
		}
	}
}

// While a transaction has written into the slot that is to be emptied, a rotation gives up and names the session.
func TestHeldRingIsNotRotated(t *testing.T) {
	w := open(t)
	w.fill(1)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), w.schema.Render(`SELECT count(*) FROM :schema.history`)); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE :schema.ring SET since = now() - interval '1 year' WHERE name = 'history'`)
	begun := time.Now()
	rotated, err := w.rings.Rotate(t.Context(), w.pool, ring.History)
	if rotated || !errors.Is(err, ring.ErrHeld) {
		t.Fatalf("rotated %v after %v: %v", rotated, time.Since(begun), err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.rotate(true)
}
