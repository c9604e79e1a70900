package bus_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/store/deadletter"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A role without the right to create tables got an error about a missing grant on a table that it must not have.
func TestRuntimeRoleIsToldToInstall(t *testing.T) {
	w := newWorldOf(t, bus.Options{}, pgtest.Runtime)
	e := w.endpoint("notes", bus.EndpointOptions{}, bus.HandleTx(hears))
	for call, err := range map[string]error{"Install": e.Install(t.Context()),
		"Run with AutoInstall": e.Run(t.Context())} {
		if pgerr.ClassOf(err) != pgerr.Denied || !strings.Contains(err.Error(), `edda migrate install notes`) {
			t.Errorf("%s: %v", call, err)
		}
		if call != "Install" && !errors.Is(err, bus.ErrNotInstalled) {
			t.Errorf("%s: %v, want ErrNotInstalled", call, err)
		}
	}
	if _, err := w.pool.Exec(t.Context(), w.sql(`CREATE TABLE edda.mine (n int)`)); pgerr.ClassOf(err) != pgerr.Denied {
		t.Errorf("the runtime role created a table: %v", err)
	}
	var role string
	if err := w.pool.QueryRow(t.Context(), `SELECT current_user`).Scan(&role); err != nil || role != w.role ||
		role == "" {
		t.Errorf("the engine runs as %q, want %q: %v", role, w.role, err)
	}
	w.makeQueue("notes")
	stop := w.run(e)
	w.untilSubscribed("notes")
	stop()
	if err := w.process(pgdev.DSN(t), bus.Options{}).InstallQueue(t.Context(), "notes", "order.shipped"); err != nil {
		t.Errorf("an install of what is there already: %v", err)
	}
}

func (w *world) untilSubscribed(endpoint string) {
	w.t.Helper()
	w.until(endpoint+" is subscribed", func() bool {
		return w.count(`SELECT count(*) FROM edda.subscription s JOIN edda.queue q ON q.id = s.queue
			WHERE q.endpoint = $1`, endpoint) > 0
	})
}

// Old ids and records are deleted under the role that runs endpoints.
func TestCleanUpDeletesUnderAnyRole(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.exec(`INSERT INTO edda.sent_id (id, sum, at) SELECT gen_random_uuid(), '', now() - n * interval '1 day'
		FROM generate_series(1, 10) n`)
	w.exec(`INSERT INTO edda.discarded (endpoint, message_id, kind, saga, key, reason, at)
		SELECT 'e', gen_random_uuid(), 'k', '', '', 'r', now() - n * interval '4 days' FROM generate_series(1, 10) n`)
	bus.CleanNow(t.Context(), w.bus)
	w.want(6, `SELECT count(*) FROM edda.sent_id`)
	w.want(7, `SELECT count(*) FROM edda.discarded`)
	schema, err := pg.ParseSchema(w.schema)
	if err != nil {
		t.Fatal(err)
	}
	letters := deadletter.New(schema)
	if n, err := letters.Prune(t.Context(), w.pool, 4*24*time.Hour-time.Hour, 100); err != nil ||
		n != 7 {
		t.Errorf("%d pruned, %v", n, err)
	}
}

// Every way to send works for a role that may only send, at every isolation level, also with ids of the sender; and the
// role can read no table.
func TestSenderRoleSends(t *testing.T) {
	w := newWorldOf(t, bus.Options{}, pgtest.Sender)
	w.makeQueue("listener")
	w.exec(`INSERT INTO edda.subscription (kind, queue) SELECT k, 1 FROM unnest('{order.shipped,tally.add}'::text[]) k`)
	id, sent := newID(t), 0
	for range 2 { // the second is a duplicate
		if _, err := w.bus.Send(t.Context(), add{N: 1}, saga.WithID(id)); err != nil {
			t.Fatal(err)
		}
	}
	w.send(add{N: 2}, saga.Delay(time.Minute))
	if _, err := w.bus.Publish(t.Context(), shipped{}); err != nil {
		t.Fatal(err)
	}
	sent += 3
	db := stdlib.OpenDBFromPool(w.pool)
	defer db.Close()
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		o := pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(strings.ToLower(level.String()))}
		err := pgx.BeginTxFunc(t.Context(), w.pool, o, func(tx pgx.Tx) error {
			_, err := w.bus.SendTx(t.Context(), tx, add{N: 3}, saga.WithID(newID(t)))
			if err == nil {
				_, err = w.bus.PublishTx(t.Context(), tx, shipped{})
			}
			return err
		})
		if err != nil {
			t.Errorf("SendTx, %v: %v", level, err)
		}
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		if err != nil {
			t.Fatal(err)
		}
		_, sendErr := w.bus.SQL(nil).SendTx(t.Context(), tx, add{N: 4}, saga.WithID(newID(t)))
		_, publishErr := w.bus.SQL(nil).PublishTx(t.Context(), tx, shipped{})
		if err := errors.Join(sendErr, publishErr, tx.Commit()); err != nil {
			t.Errorf("SendSQL, %v: %v", level, err)
		}
		sent += 4
	}
	w.want(sent, `SELECT count(*) FROM edda.queue_1`)
	if _, err := w.operator().Messages().Peek(t.Context(), "listener", operate.PeekOptions{}); pgerr.ClassOf(
		err) != pgerr.Denied ||
		!strings.Contains(err.Error(), "edda migrate grants") {
		t.Errorf("a sender looked into a queue: %v", err)
	}
	e := w.endpoint("listener", bus.EndpointOptions{}, bus.HandleTx(hears))
	if err := e.Run(t.Context()); pgerr.ClassOf(err) != pgerr.Denied {
		t.Errorf("a sender ran an endpoint: %v", err)
	}
}
