package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/store/lease"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// fullNotifications makes a world without room for notifications, according to the functions that the engine finds in
// its search_path: a real queue has 8 GiB. A notification fails at once here, and not in the COMMIT.
func fullNotifications(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, bus.Options{})
	w.exec(`CREATE FUNCTION edda.pg_notification_queue_usage() RETURNS double precision
		LANGUAGE sql AS 'SELECT 1.0::double precision'`)
	w.exec(`CREATE FUNCTION edda.pg_notify(channel text, payload text) RETURNS text LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$`)
	config := w.pool.Config()
	theirs := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		c.RuntimeParams["search_path"] = pgx.Identifier{w.schema}.Sanitize() + ", pg_catalog"
		if theirs != nil {
			return theirs(ctx, c)
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.pool = pool
	return w
}

// A listener of any program that stays in a transaction fills the queue of notifications in the end. Then no
// transaction that notifies commits, which would lose more than a wake-up.
func TestNoRoomForNotificationsCostsNoEffects(t *testing.T) {
	w := fullNotifications(t)
	b := w.newBus(bus.Options{Schema: w.schema, NotifyInTx: true})
	_, err := w.pool.Exec(t.Context(), `SELECT pg_notify('x', 'y')`)
	if err == nil || !strings.Contains(err.Error(), "54000") {
		t.Fatalf("there is room for notifications: %v", err)
	}
	if err := w.ownersBus().InstallQueue(t.Context(), "orders", add{}.Kind()); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(tx pgx.Tx) error{
		"a message": func(tx pgx.Tx) error { _, err := b.SendTx(t.Context(), tx, add{}); return err },
		"messages of another program": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), w.sql(
				`SELECT edda.send_all('orders', '[{"kind":"k","body":""}]', 'channel')`))
			return err
		},
		"a limit": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), w.sql(`SELECT edda.set_limit('orders', 3)`))
			return err
		},
		"a success that makes a follower due": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), w.sql(`
				INSERT INTO edda.manifest (name, definition, kind, body, parent, follows) VALUES
					('first', '{}', 'k', '{}', NULL, false), ('second', '{}', 'k', '{}', 'first', true);
				INSERT INTO edda.run (id, manifest_id, origin, state, due, ready, attempt, message_id)
				SELECT gen_random_uuid(), id, 'manual', 'active', now(), now(), 1, gen_random_uuid()
				FROM edda.manifest WHERE name = 'first';
				SELECT edda.run_end(array_agg(id), array_agg(attempt), array_agg('succeeded'::text),
				array_agg(''::text))
				FROM edda.run`))
			return err
		},
	} {
		if err := pgx.BeginTxFunc(t.Context(), w.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, do); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.operator().Endpoints().Pause(t.Context(), "orders", "no room"); err != nil {
		t.Error(err)
	}
	w.leaseIsGivenBack()
}

// leaseIsGivenBack takes a lease and releases it.
func (w *world) leaseIsGivenBack() {
	w.t.Helper()
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		w.t.Fatal(err)
	}
	leases := lease.New(schema)
	db := pg.Committed(w.pool).Writing()
	term, ok, err := leases.Acquire(w.t.Context(), db, lease.Bid{Name: "mine", Holder: "me", Lease: time.Minute})
	if ok && err == nil {
		ok, err = leases.Release(w.t.Context(), db, term)
	}
	if !ok || err != nil {
		w.t.Errorf("a lease: %v, %v", ok, err)
	}
}
