package limit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
)

func TestEachStatementIsPreparedAndUsedOnce(t *testing.T) {
	w := open(t)
	pgtest.Statements(t, w.pool.Pool, w.schema, "statements.sql")
}

func TestStatementsReachTheirRowsByIndex(t *testing.T) {
	w := open(t)
	slots := []string{"{n7,n8}", "{1,2}", "{h1,h2}", "{1,1}"}
	pgtest.Probes{
		SQL: pg.Load(limit.Statements, w.schema),
		Statements: map[string][]string{
			"grant": {"n7", "h9", "2", "1000000", "1000000"}, "permit": {"n7"}, "held": slots, "release": slots,
			"renew": append(slots[:4:4], "1000000"), "withdraw": {"n7", "h1"}, "exists": {"n7"},
		},
		Settings: []string{"SET LOCAL enable_seqscan = off", "SET LOCAL enable_bitmapscan = off",
			"SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off"},
		Fill: `INSERT INTO :schema.concurrency_limit (name, slots) SELECT 'n' || n, 3 FROM generate_series(1, 300) n;
			INSERT INTO :schema.slot (name, no, enabled, epoch, holder, expires)
			SELECT 'n' || n, m, true, 1, 'h' || m, now() + interval '1 hour' FROM generate_series(1, 300) n,
			generate_series(1, 3) m;
			INSERT INTO :schema.ticket (name, holder, expires) SELECT 'n' || n, 'h' || m, now() + interval '1 hour'
			FROM generate_series(1, 300) n, generate_series(1, 3) m`,
		MaxRows: 6, // all slots of one limit, twice
	}.Check(t, pgtest.Pool(t), w.schema)
}

// Endpoints without a limit check for one on every claim.
func TestWhereThereIsNoLimitOneProbeTellsIt(t *testing.T) {
	w := open(t)
	if g := w.ask("a", 3); g.Limited || g.Waiting || len(g.Slots) != 0 {
		t.Fatalf("no limit, and got %+v", g)
	}
	statements := pg.Load(limit.Statements, w.schema)
	for _, settings := range []string{"SELECT 1", "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = " +
		"off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off"} {
		tx := w.begin()
		if _, err := tx.Exec(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Prepare(t.Context(), "grant", statements.Get("grant")); err != nil {
			t.Fatal(err)
		}
		for _, scan := range pgtest.Explain(t, tx, "grant", "none", "a", "1", "1000000", "1000000") {
			if scan.Loops > 0 && (scan.Table == "slot" || scan.Table == "ticket") {
				t.Errorf("under %q it also reads %v", settings, scan)
			}
		}
		_ = tx.Rollback(t.Context())
	}
	w.exec("SELECT :schema.expect(NOT EXISTS (SELECT FROM :schema.ticket), 'a ticket was left')")
}

func TestSlotsAreGrantedUpToTheLimit(t *testing.T) {
	w := open(t)
	w.set(3)
	a := w.gets("a", 2, 2)
	b := w.gets("b", 2, 1)
	w.gets("c", 1, 0)
	if i := w.info(); i.Held != 3 || i.Enabled != 3 || i.Waiting != 2 || i.Draining != 0 || i.Oldest.IsZero() {
		t.Errorf("it stands at %+v", i)
	}
	if r := w.release(a[0], b[0]); r.Slots != 2 || len(r.Waiting) != 1 {
		t.Errorf("released %+v", r)
	}
	w.gets("c", 1, 1)
}

// A rolled back transaction has granted nothing, and left no ticket in the line.
func TestGrantIsAPartOfItsTransaction(t *testing.T) {
	w := open(t)
	w.set(1)
	tx := w.begin()
	if g := w.askIn(tx, "a", 1); len(g.Slots) != 1 {
		t.Fatalf("a got %+v", g)
	}
	w.gets("b", 1, 0) // the slot counts as taken
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.gets("b", 1, 1)
	if i := w.info(); i.Held != 1 || i.Waiting != 0 {
		t.Errorf("it stands at %+v", i)
	}
}

func TestWhoComesFirstIsServedFirst(t *testing.T) {
	w := open(t)
	w.set(1)
	slot := w.gets("a", 1, 1)
	w.gets("b", 1, 0)
	w.gets("c", 1, 0)
	w.gets("a", 1, 0)
	for _, next := range []string{"b", "c", "a"} {
		w.release(slot...)
		for _, other := range []string{"d", "a", "c", "b"} { // d is new, and comes last
			if other != next {
				w.gets(other, 1, 0)
			}
		}
		slot = w.gets(next, 1, 1)
		if _, err := w.pool.Exec(t.Context(), w.schema.Render("DELETE FROM :schema.ticket WHERE holder IN ('d', $1)"),
			next); err != nil {
			t.Fatal(err)
		}
	}
}

// No holder gets a second slot while a waiting one could have a first.
func TestThoseWhoWaitGetOneEach(t *testing.T) {
	w := open(t)
	w.set(4)
	all := w.gets("z", 4, 4)
	for _, who := range []string{"a", "b", "c"} {
		w.gets(who, 4, 0)
	}
	w.release(all...)
	w.gets("c", 4, 2) // of four slots, one each is for a and b
	w.gets("d", 4, 0)
	w.gets("b", 4, 1)
	w.gets("a", 4, 1)
}

// A holder that dies while it waits delays the holders behind it only for its patience. A holder that was only slow
// keeps its place.
func TestTicketOfTheDeadIsPassedOver(t *testing.T) {
	w := open(t)
	w.set(1)
	slot := w.gets("a", 1, 1)
	w.gets("b", 1, 0)
	w.gets("c", 1, 0)
	w.gets("d", 1, 0)
	w.expire("b")
	w.release(slot...)
	w.gets("d", 1, 0)
	slot = w.gets("c", 1, 1)
	w.gets("b", 1, 0)
	w.release(slot...)
	w.gets("d", 1, 0)
	w.gets("b", 1, 1)
}

func TestWithdrawnTicketHoldsNobodyUp(t *testing.T) {
	w := open(t)
	w.set(1)
	slot := w.gets("a", 1, 1)
	w.gets("b", 1, 0)
	w.gets("c", 1, 0)
	if err := w.store.Withdraw(t.Context(), w.pool, "billing", "b"); err != nil {
		t.Fatal(err)
	}
	w.release(slot...)
	w.gets("c", 1, 1)
}

// If the limit were kept in a row other than the slot's, it could be lowered while a grant is in flight. Here the
// grant has its snapshot, and has locked nothing yet.
func TestLoweringMeetsAGrantOnItsWay(t *testing.T) {
	w := open(t)
	const gate = 7_410_023 // for this test only
	slowed := strings.Replace(limit.Statements, "THEN least($3::bigint,",
		"AND pg_advisory_xact_lock_shared(7410023)::text = '' THEN least($3::bigint,", 1)
	if slowed == limit.Statements {
		t.Fatal("the statement has changed")
	}
	statements := pg.Load(slowed, w.schema)
	w.set(2)
	w.gets("a", 1, 1)
	w.gets("x", 1, 1)
	// The first slot is free: it is disabled, and stays, while a slot beyond the limit would be deleted.
	if _, err := w.pool.Exec(t.Context(), w.schema.Render(`UPDATE :schema.slot SET holder = NULL,
		granted = NULL, expires = NULL WHERE no = 1`)); err != nil {
		t.Fatal(err)
	}
	holder, grant := w.begin(), w.begin()
	if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_xact_lock($1::bigint)", gate); err != nil {
		t.Fatal(err)
	}
	granted := make(chan int, 1)
	go func() {
		rows, _ := grant.Query(context.WithoutCancel(t.Context()), statements.Get("grant"), "billing", "y", 1,
			3_600_000_000, 1_000_000)
		slots, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n int, err error) {
			var no, epoch *int64
			if err = row.Scan(&no, &epoch); no != nil {
				n = 1
			}
			return n, err
		})
		if err != nil || len(slots) == 0 {
			t.Errorf("the slowed grant: %v", err)
			slots = []int{0}
		}
		granted <- slots[0]
	}()
	pgtest.AwaitBlocked(t, w.pool.Pool, grant.Conn())
	w.set(1)
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := <-granted; n != 0 {
		t.Errorf("lowered to one, and a grant that had begun before made a second holder\n%s", w.story())
	}
	if err := grant.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPermitsEndWithTheirTransactions(t *testing.T) {
	w := open(t)
	if permit := w.permit(w.begin()); permit {
		t.Errorf("there is no limit, and permit %v", permit)
	}
	w.set(2)
	first, second, third := w.begin(), w.begin(), w.begin()
	if a, b, c := w.permit(first), w.permit(second), w.permit(third); !a || !b || c {
		t.Fatalf("of two permits: %v, %v, %v", a, b, c)
	}
	if i := w.info(); i.Held != 2 {
		t.Errorf("two permits are taken, and it stands at %+v", i)
	}
	w.gets("a", 1, 0) // a lease cannot take the slot of a permit
	var setting string
	if err := third.QueryRow(t.Context(), "SELECT current_setting('edda.permit')").Scan(&setting); err != nil ||
		setting != "0" {
		t.Errorf("edda.permit is %q, %v", setting, err)
	}
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if permit := w.permit(third); !permit {
		t.Errorf("a permit was given back, and not found: %v", permit)
	}
	// A connection that is lost releases its permit.
	_ = second.Conn().PgConn().Conn().Close()
	for fourth := w.begin(); !w.permit(fourth); {
		if t.Context().Err() != nil {
			t.Fatal("the permit of a lost connection stays taken")
		}
	}
}

func TestLeasedSlotIsNoPermit(t *testing.T) {
	w := open(t)
	w.set(1)
	w.gets("a", 1, 1)
	if permit := w.permit(w.begin()); permit {
		t.Errorf("the slot is held by a lease, and permit %v", permit)
	}
	w.expire("a")
	tx := w.begin()
	if permit := w.permit(tx); !permit {
		t.Errorf("the lease is over, and permit %v", permit)
	}
	w.gets("b", 1, 0)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.gets("b", 1, 1)
}

func TestPatienceIsBoundedByTheLease(t *testing.T) {
	w := open(t)
	w.set(1)
	w.gets("a", 1, 1)
	ask := func(r limit.Request) time.Duration {
		t.Helper()
		r.Name, r.Want = "billing", 1
		if _, err := w.store.Grant(t.Context(), w.pool, r); err != nil {
			t.Fatal(err)
		}
		var left time.Duration
		if err := w.pool.QueryRow(t.Context(),
			w.schema.Render("SELECT expires - clock_timestamp() FROM :schema.ticket WHERE holder = $1"),
			r.Holder).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left
	}
	for _, c := range []struct {
		r        limit.Request
		from, to time.Duration
	}{
		{limit.Request{Holder: "b", Lease: time.Minute}, 1500 * time.Millisecond, 3 * time.Second},
		{limit.Request{Holder: "c", Lease: 2 * time.Second}, time.Second, 2 * time.Second},
		{limit.Request{Holder: "d", Lease: time.Minute, Patience: 40 * time.Second}, 30 * time.Second,
			40 * time.Second},
	} {
		if left := ask(c.r); left < c.from || left > c.to {
			t.Errorf("%+v: the ticket expires in %v", c.r, left)
		}
	}
}
