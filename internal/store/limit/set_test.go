package limit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/limit"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/migrations"
	"github.com/jackc/pgx/v5"
)

// listen returns a function that waits for the next notification of the schema.
func (w *world) listen() (heard func() string) {
	w.t.Helper()
	conn := pgdev.Connect(w.t)
	if _, err := conn.Exec(w.t.Context(), "LISTEN "+pgx.Identifier{w.schema.Channel()}.Sanitize()); err != nil {
		w.t.Fatal(err)
	}
	return func() string {
		w.t.Helper()
		n, err := conn.WaitForNotification(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		return n.Payload
	}
}

func TestLoweringDrainsAndRaisingKeepsThoseWhoDrain(t *testing.T) {
	w := open(t)
	w.set(5)
	all := w.gets("a", 5, 5)
	w.set(2)
	if lost, busy := w.renew(all...); len(lost)+len(busy) > 0 {
		t.Fatalf("lowering ended the work under %+v", lost)
	}
	if i := w.info(); i.Enabled != 2 || i.Held != 5 || i.Draining != 3 {
		t.Errorf("lowered to 2 with 5 held: %+v", i)
	}
	// The holders that end first need not be the holders of disabled slots.
	for n, slot := range all[:3] {
		w.gets("b", 1, 0)
		if r := w.release(slot); r.Slots != 1 {
			t.Fatalf("release %d: %+v", n, r)
		}
	}
	w.gets("b", 1, 0)
	// Raised while it drains: new slots in addition to the draining ones would be too many.
	w.set(3)
	if i := w.info(); i.Held != 2 || i.Enabled != 3 || i.Draining != 1 {
		t.Errorf("raised by one while two drain: one of them should drain no more: %+v\n%s", i, w.story())
	}
	b := w.gets("b", 3, 1)
	if i := w.info(); i.Held != 3 || i.Enabled != 3 {
		t.Errorf("raised to 3 with two held of old: %+v\n%s", i, w.story())
	}
	w.release(append(b, all[3:]...)...)
	w.gets("b", 9, 3)
	w.gets("c", 1, 0)
}

// A slot's row that was deleted and inserted again must not be taken for the old one.
func TestEpochsGoOnAfterALimitWasLower(t *testing.T) {
	w := open(t)
	w.set(3)
	var old []limit.Slot
	for range 4 {
		old = w.gets("a", 3, 3)
		w.release(old...)
	}
	old = w.gets("a", 3, 3)
	for range 4 { // the last slot, which is deleted first, has the largest epoch
		w.release(old[2])
		old[2] = w.gets("a", 1, 1)[0]
	}
	w.release(old...)
	w.set(1)
	var rows int
	if err := w.pool.QueryRow(t.Context(), w.schema.Render("SELECT count(*) FROM :schema.slot")).Scan(
		&rows); err != nil || rows != 1 {
		t.Errorf("%d slots are left of 3, %v: every grant would read them", rows, err)
	}
	last := w.gets("a", 1, 1)
	if last[0].Epoch <= old[2].Epoch {
		t.Errorf("%+v after %+v was deleted", last[0], old[2])
	}
	w.release(last...)
	w.set(3)
	for n, slot := range w.gets("a", 3, 3) {
		if slot.Epoch <= old[n].Epoch {
			t.Errorf("%+v after %+v", slot, old[n])
		}
	}
}

// Invalid numbers, from Go and from psql.
func TestSetRefuses(t *testing.T) {
	w := open(t)
	for _, n := range []int{0, -1, limit.Most + 1} {
		err := w.store.Set(t.Context(), w.pool, "billing", n)
		if err == nil || !strings.Contains(err.Error(), "billing") {
			t.Errorf("set to %d: %v", n, err)
		}
		if _, err := w.store.Declare(t.Context(), w.pool, "billing", n); err == nil {
			t.Errorf("declared %d", n)
		}
		_, err = w.pool.Exec(t.Context(), w.schema.Render("SELECT :schema.set_limit('billing', $1)"), n)
		if pgerr.Code(err) != "22023" || !strings.Contains(err.Error(), "billing") {
			t.Errorf("set_limit %d: %v", n, err)
		}
	}
	if err := w.store.Reset(t.Context(), w.pool, "billing"); pgerr.Code(err) != "22023" ||
		!strings.Contains(err.Error(), "no program has declared") {
		t.Errorf("a reset to nothing: %v", err)
	}
	for _, name := range []string{"", "Billing", "a b"} {
		if err := w.store.Set(t.Context(), w.pool, name, 1); pgerr.Code(err) != "22023" {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := w.store.Get(t.Context(), w.pool, "billing"); !errors.Is(err, limit.ErrNoLimit) {
		t.Errorf("a limit that was refused is there: %v", err)
	}
	if yes, err := w.store.Exists(t.Context(), w.pool, "billing"); yes || err != nil {
		t.Error(yes, err)
	}
}

// A deploy with a new number changes the limit, unless an operator has set one; a reset returns to the program's.
func TestDeclaredLimitIsFollowedUntilAnOperatorSetsOne(t *testing.T) {
	w := open(t)
	stands := func(n, declared int, operated bool) {
		t.Helper()
		if i := w.info(); i.Slots != n || i.Enabled != n || i.Declared != declared || i.Operated != operated {
			t.Errorf("the limit is %+v, want %d, declared %d, operated %v", i, n, declared, operated)
		}
	}
	declare := func(n, want int) {
		t.Helper()
		if got, err := w.store.Declare(t.Context(), w.pool, "billing", n); err != nil || got != want {
			t.Errorf("declared %d: %d in force, want %d, %v", n, got, want, err)
		}
	}
	reset := func() {
		t.Helper()
		if err := w.store.Reset(t.Context(), w.pool, "billing"); err != nil {
			t.Error(err)
		}
	}
	declare(4, 4)
	declare(7, 7)
	stands(7, 7, false)
	declare(3, 3)
	stands(3, 3, false)
	w.set(2)
	stands(2, 3, true)
	declare(3, 2)
	declare(5, 2)
	stands(2, 5, true)
	reset()
	stands(5, 5, false)
	declare(6, 6)
	reset()
	stands(6, 6, false)
	if yes, err := w.store.Exists(t.Context(), w.pool, "billing"); !yes || err != nil {
		t.Error(yes, err)
	}
	// An operator was first.
	if err := w.store.Set(t.Context(), w.pool, "mail", 9); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Reset(t.Context(), w.pool, "mail"); pgerr.Code(err) != "22023" {
		t.Errorf("a reset to what no program has declared: %v", err)
	}
	if n, err := w.store.Declare(t.Context(), w.pool, "mail", 1); n != 9 || err != nil {
		t.Errorf("the operator's 9 became %d, %v", n, err)
	}
}

func TestLargestLimit(t *testing.T) {
	w := open(t)
	w.set(limit.Most)
	if i := w.info(); i.Enabled != limit.Most {
		t.Errorf("%+v", i)
	}
	w.gets("a", 5000, 5000)
	w.set(10)
	if i := w.info(); i.Enabled != 10 || i.Draining != 4990 {
		t.Errorf("%+v", i)
	}
}

// Batches of transactional endpoints hold their slots by locks: raising the limit does not wait for them, and
// lowering takes free slots first, and waits only for as many as are too many.
func TestChangesUnderPermits(t *testing.T) {
	w := open(t)
	w.set(3)
	first, second := w.begin(), w.begin()
	if !w.permit(first) || !w.permit(second) {
		t.Fatal("no permits")
	}
	w.set(4)
	w.set(2) // two are free
	done := make(chan error, 1)
	lower := w.begin()
	go func() { done <- w.store.Set(context.WithoutCancel(t.Context()), lower, "billing", 1) }()
	pgtest.AwaitBlocked(t, w.pool.Pool, lower.Conn())
	for _, tx := range []pgx.Tx{second, first} {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := lower.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.permit(w.begin()) || w.permit(w.begin()) {
		t.Errorf("want one permit\n%s", w.story())
	}
}

// A caller of set_limit in psql does not have the channel's name.
func TestChannelIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, odd := range []string{"", `_x"y z'ä\`, "_Ω7"} {
		schema, err := pg.ParseSchema(pgdev.Schema(t) + odd)
		if err != nil {
			t.Fatal(err)
		}
		if odd != "" {
			t.Cleanup(func() {
				_, _ = pool.Exec(context.WithoutCancel(t.Context()), schema.Render("DROP SCHEMA :schema CASCADE"))
			})
		}
		if err := migrations.Up(t.Context(), pool, migrations.Options{Schema: schema.Name()}); err != nil {
			t.Fatal(err)
		}
		var channel string
		if err := pool.QueryRow(t.Context(), schema.Render("SELECT :schema.channel()")).Scan(&channel); err != nil ||
			channel != schema.Channel() {
			t.Errorf("schema %q: channel %q, want %q, %v", schema.Name(), channel, schema.Channel(), err)
		}
	}
}

// in_hand reports a lock that a transaction holds, and not a lock that was released or that the caller itself may
// take.
func TestInHandSeesRunningTransactions(t *testing.T) {
	w := open(t)
	w.set(1)
	see := func() (seen bool) {
		t.Helper()
		if err := w.pool.QueryRow(t.Context(),
			w.schema.Render("SELECT bool_or(:schema.in_hand(xmax)) FROM :schema.slot")).Scan(&seen); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	for range 3 {
		if see() {
			t.Error("nobody has it")
		}
		tx := w.begin()
		w.permit(tx)
		if !see() {
			t.Error("a permit goes unseen")
		}
		_ = tx.Rollback(t.Context())
	}
}
