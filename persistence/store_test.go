package persistence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type ctx = context.Context

func (db database) scene(t *testing.T, lock bool) scene {
	f := fixture{lock: lock}
	f.begin = func(ctx ctx) (storeTx, error) {
		tx, err := db.BeginTx(ctx, pg.ReadCommitted)
		return postgresTx{db.store, tx}, err
	}
	f.read = func(ctx ctx, name, key string) (saga.Instance, bool, error) {
		return db.store.Read(ctx, db.Pool, name, key)
	}
	return scene{t, f}
}

// If a row was edited by hand, its neighbours in a batch must not suffer, and it must be distinguished from a missing
// row.
func TestFaultyRowDoesNotHurtItsNeighbours(t *testing.T) {
	t.Parallel()
	edits := map[string]string{
		`timeouts = '"x"'`:           "column timeouts",
		`timeouts = '[{"id":"no"}]'`: "column timeouts",
		`timeouts = '[{"due":"0"}]'`: "column timeouts",
		`timeouts = '{}'`:            "column timeouts",
		`originator = '[1]'`:         "column originator",
		`state = '"x"'`:              "", // only the saga decides whether a state can be read
		`state_version = -1`:         "",
		`timeouts = 'null'`:          "",
	}
	for edit, fault := range edits {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			for _, lock := range []bool{true, false} {
				db := open(t)
				s := db.scene(t, lock)
				s.won("start", s.then(start(order("7", 1)), start(order("8", 2)), start(order("9", 3))), true, true,
					true)
				if _, err := db.Exec(t.Context(),
					db.render("UPDATE :schema.saga SET "+edit+" WHERE key = '8'")); err != nil {
					t.Fatal(err)
				}
				a := s.begin()
				found := a.load(key("7"), byID(order("8", 2).ID), key("9"))
				wantFaulty(t, found, fault)
				s.won("save the neighbours", a.save(write(persistence.Update, found[0]),
					write(persistence.Complete, found[2])), true, true)
				a.commit()
				_, _, err := db.store.Read(t.Context(), db.Pool, "order", "8")
				if (err != nil) != (fault != "") {
					t.Errorf("read: %v, want a fault: %t", err, fault != "")
				}
			}
		})
	}
}

func wantFaulty(t *testing.T, found []persistence.Found, fault string) {
	t.Helper()
	for n, f := range found {
		if f.Status != persistence.Loaded || n != 1 && f.Faulty != nil {
			t.Fatalf("ref %d: %v, %v", n, f.Status, f.Faulty)
		}
	}
	f := found[1]
	told := ""
	if f.Faulty != nil {
		told = f.Faulty.Error()
	}
	if (fault == "") != (told == "") || !strings.Contains(told, fault) {
		t.Errorf("faulty: %v, want %q", f.Faulty, fault)
	}
	if f.Instance.ID != order("8", 2).ID || f.Instance.Version != 1 || f.Instance.Key != "8" {
		t.Errorf("the faulty instance is %+v", f.Instance)
	}
	if f.Faulty != nil && f.Instance.Pending != nil {
		t.Errorf("a faulty instance has pending timeouts: %v", f.Instance.Pending)
	}
}

func TestWaitEndsWithTheHolderOrTheLockTimeout(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := db.scene(t, true)
	s.won("start", s.then(start(order("7", 1))), true)
	id := order("7", 1).ID
	holder := s.begin()
	f := holder.get(key("7"))

	impatient := db.begin(t)
	if _, err := impatient.Exec(t.Context(), "SET LOCAL lock_timeout = '5ms'"); err != nil {
		t.Fatal(err)
	}
	if err := db.store.Wait(t.Context(), impatient, id); pgerr.ClassOf(err) != pgerr.Busy ||
		!strings.Contains(err.Error(), id.String()) {
		t.Errorf("wait with a lock_timeout: %v, want 55P03 naming the instance", err)
	}
	_ = impatient.Rollback(t.Context())

	patient := db.begin(t)
	waited := make(chan error, 1)
	go func() { waited <- db.store.Wait(t.Context(), patient, id) }()
	pgtest.AwaitBlocked(t, db.Pool, patient.Conn())
	s.won("update", holder.save(write(persistence.Update, f)), true)
	holder.commit()
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	found, err := db.store.Load(t.Context(), patient, []persistence.Ref{{Saga: "order", Key: "7", Lock: true}})
	if err != nil || found[0].Status != persistence.Loaded || found[0].Instance.Version != 2 {
		t.Errorf("load after the wait: %+v, %v; want version 2", found, err)
	}
	other := s.begin()
	if got := other.load(key("7"))[0].Status; got != persistence.Busy {
		t.Errorf("another transaction finds what was waited for %v, want busy", got)
	}
}

func TestWaitForNothingReturns(t *testing.T) {
	t.Parallel()
	db := open(t)
	if err := db.store.Wait(t.Context(), db.begin(t), saga.ID{1}); err != nil {
		t.Error(err)
	}
}

func (db database) begin(t *testing.T) pgx.Tx {
	t.Helper()
	s := scene{t, fixture{begin: func(ctx ctx) (storeTx, error) {
		tx, err := db.BeginTx(ctx, pg.ReadCommitted)
		return postgresTx{db.store, tx}, err
	}}}
	return s.begin().tx.(postgresTx).tx
}

// If an instance could occur twice in a save, one of its states would be lost silently.
func TestInstanceWrittenTwiceFailsTheSave(t *testing.T) {
	t.Parallel()
	for _, lock := range []bool{true, false} {
		for _, op := range []persistence.Op{persistence.Update, persistence.Complete} {
			db := open(t)
			s := db.scene(t, lock)
			s.won("start", s.then(start(order("7", 1))), true)
			a := s.begin()
			f := a.load(key("7"), byID(order("7", 1).ID))
			_, err := a.tx.Save(t.Context(), []persistence.Write{write(op, f[0]), write(op, f[1])})
			if pgerr.ClassOf(err) != pgerr.GuardFailed {
				t.Errorf("op %d, lock %t: save an instance twice: %v, want the guard's error", op, lock, err)
			}
			a.rollback()
			s.want("7", 1)
		}
	}
}

// If a row has moved although the caller claims to have locked it, nothing may commit.
func TestLostLockFailsTheSave(t *testing.T) {
	t.Parallel()
	for _, op := range []persistence.Op{persistence.Update, persistence.Complete} {
		db := open(t)
		s := db.scene(t, true)
		s.won("start", s.then(start(order("7", 1))), true)
		a := s.begin()
		f := a.get(key("7"))
		a.commit()
		s.won("move", s.then(write(persistence.Update, s.released(key("7")))), true)
		late := s.begin()
		_, err := late.tx.Save(t.Context(), []persistence.Write{write(op, f)})
		if pgerr.ClassOf(err) != pgerr.GuardFailed {
			t.Errorf("op %d: save without the lock: %v, want the guard's error", op, err)
		}
		late.rollback()
		s.want("7", 2)
	}
}

func TestReadNeitherLocksNorWaits(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := db.scene(t, true)
	s.won("start", s.then(start(order("7", 1))), true)
	holder := s.begin()
	s.won("update", holder.save(write(persistence.Update, holder.get(key("7")))), true)
	s.atOnce("read", func(ctx ctx) error {
		_, _, err := db.store.Read(ctx, db.Pool, "order", "7")
		return err
	})
	s.want("7", 1)
	holder.commit()
	s.want("7", 2)
}

// Updates must stay in their page: no index contains a changed column.
func TestUpdatesAreHOT(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := db.scene(t, true)
	s.won("start", s.then(start(order("7", 1))), true)
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const updates = 20
	tx, err := conn.BeginTx(t.Context(), pg.ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	for range updates {
		f, err := db.store.Load(t.Context(), tx, []persistence.Ref{{Saga: "order", Key: "7", Lock: true}})
		if err != nil {
			t.Fatal(err)
		}
		f[0].Instance.State = bytes.Repeat([]byte("1"), 5)
		if _, err := db.store.Save(t.Context(), tx, []persistence.Write{write(persistence.Update, f[0])}); err != nil {
			t.Fatal(err)
		}
	}
	var all, hot int
	err = tx.QueryRow(t.Context(), db.render("SELECT pg_stat_get_xact_tuples_updated(c), "+
		"pg_stat_get_xact_tuples_hot_updated(c) FROM (SELECT ':schema.saga'::regclass::oid c) x")).Scan(&all, &hot)
	if err != nil || all != updates || hot != updates {
		t.Errorf("%d updates, %d of them HOT, %v; want %d", all, hot, err, updates)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("7", updates+1)
}

// The statements of a batch are planned while the table is empty, and run when it is full.
func TestBatchNeverReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	operator := []string{"SET LOCAL enable_seqscan = off", "SET LOCAL enable_bitmapscan = off"}
	engine := append(operator[:2:2], "SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off")
	for name, settings := range map[string][]string{"of the engine": engine, "of an operator": operator} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, schema := pgtest.Database(t)
			probes(persistence.New(schema), settings).Check(t, pool, schema)
		})
	}
}

// Postgres plans a read outside of a batch for each call: a plan that the session keeps may have been made for an
// empty table.
func TestReadsOfOneInstanceKeepNoPlan(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Database(t)
	store := persistence.New(schema)
	kept := pgtest.Kept(t, pool, func(conn *pgxpool.Conn) {
		_, _, err := store.Read(t.Context(), conn, "order", "7")
		_, _, shown := store.Show(t.Context(), conn, "order", "7")
		_, _, page := store.LastPage(t.Context(), conn, "order", "7")
		_, _, name := store.NameOf(t.Context(), conn, saga.ID{7})
		if err := errors.Join(err, shown, page, name); err != nil {
			t.Error(err)
		}
	})
	if len(kept) > 0 {
		t.Errorf("the connection keeps the plans of %v", kept)
	}
}

const probed = 200 // instances in the batch, of 100,000 in the table

func probes(store *persistence.Store, settings []string) pgtest.Probes {
	column := func(each func(n int) string) string {
		var all []string
		for n := range probed {
			all = append(all, each(n))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	constant := func(text string) string { return column(func(int) string { return text }) }
	number := column(func(n int) string { return fmt.Sprint(n) })
	iid := column(func(n int) string { return fmt.Sprintf("%032x", n*500+1) })
	tid := "SELECT coalesce(array_agg(ctid ORDER BY iid), '{}')::text FROM :schema.saga WHERE iid = ANY ('" + iid + "')"
	keys := column(func(n int) string { return fmt.Sprint(n*500 + 1) })
	ops := column(func(n int) string { return fmt.Sprint(n % 3) })
	changed := column(func(n int) string { return fmt.Sprint(n%2 + 1) })
	one, state := constant("1"), constant("1")
	changes := func(ops string) []string { return []string{tid, iid, one, ops, one, state, constant("NULL"), iid} }
	return pgtest.Probes{
		SQL: persistence.Statements(store), Settings: settings, MaxRows: probed,
		Statements: map[string][]string{
			"load_by_key": {number, constant("order"), keys, ops},
			"load_by_id":  {number, iid, ops},
			"wait":        {"00000000-0000-0000-0000-000000000001"},
			"start": {column(func(n int) string { return fmt.Sprintf("%032x", 1<<40+n) }), constant("order"),
				keys, one, state, constant("NULL"), constant("NULL"), constant("NULL")},
			"check":       {number, tid, iid, one},
			"save":        append([]string{number}, changes(changed)...),
			"save_locked": changes(changed),
			"end_started": {iid},
			"read":        {"order", "7"},
		},
		Fill: `INSERT INTO :schema.saga (iid, saga, key, version, state_version, state)
			SELECT lpad(to_hex(n), 32, '0')::uuid, 'order', n::text, 1, 1, '{}' FROM generate_series(1, 100000) n`,
	}
}
