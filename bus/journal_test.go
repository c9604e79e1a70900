package bus_test

import (
	"sync/atomic"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// takeAll acquires every connection of a pool until the test ends or free releases them.
func (w *world) takeAll(pool *pgxpool.Pool) (free func()) {
	w.t.Helper()
	var all []*pgxpool.Conn
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, conn)
	}
	free = func() {
		for _, conn := range all {
			conn.Release()
		}
		all = nil
	}
	w.t.Cleanup(free)
	return free
}

// A batch in quarantine has a transaction open. If it waited for a second connection, all batches could wait for ever.
func TestQuarantineBatchNeedsOneConnection(t *testing.T) {
	w := poisoned(t)
	w.suspected(3)
	w.preload(20)
	w.died("1 second", "false")
	pool := w.openPool(pgdev.DSN(t))
	b, err := bus.New(pool, bus.Options{Schema: w.schema, Wakeup: bus.PollOnly})
	if err != nil {
		t.Fatal(err)
	}
	held, handled := newGate(t), atomic.Int64{}
	w.startOn(b, "poisoned", bus.EndpointOptions{Concurrency: 3},
		bus.HandleTx(func(*bus.Context, pgx.Tx, innocent) error {
			held.pass()
			handled.Add(1)
			return nil
		}))
	await(w, "the first message", held.came)
	free := w.takeAll(pool)
	held.open()
	w.untilEmpty("poisoned")
	free()
	if n := handled.Load(); n < 23 {
		t.Errorf("%d messages were handled", n)
	}
	w.checkJournal()
}

// A session without a lock counts as alive while the server process of its batch exists.
func TestBatchOfALivingServerProcessIsNoDeath(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"it lives": false, "it is gone": true} {
		t.Run(name, func(t *testing.T) {
			w := poisoned(t)
			w.suspected(1)
			w.died("1 second")
			w.exec(`INSERT INTO edda.suspect (queue, due, id, deaths, alone)
				SELECT q.id, m.due, m.id, 3, 1 FROM edda.queue q, ` + w.queue("poisoned") +
				` m WHERE q.endpoint = 'poisoned'`)
			conn, err := pgx.Connect(t.Context(), pgdev.DSN(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(),
				w.sql(`WITH s AS (INSERT INTO edda.session (id, host, pid, queues, expires, locked)
				SELECT gen_random_uuid(), 'a host', 7, '{}', now() + interval '1 hour', false RETURNING id)
				INSERT INTO edda.in_flight (id, queue, session, alone, due, ids)
				SELECT gen_random_uuid(), q.id, s.id, true, array_agg(m.due), array_agg(m.id)
				FROM s, edda.queue q, `+w.queue("poisoned")+
					` m WHERE q.endpoint = 'poisoned' GROUP BY q.id, s.id`)); err != nil {
				t.Fatal(err)
			}
			if pid := conn.PgConn().PID(); gone {
				if err := conn.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.until("it is gone", func() bool {
					return w.count(
						`SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, pid) == 0
				})
			} else {
				defer conn.Close(t.Context())
			}
			w.takes(bus.EndpointOptions{})
			w.untilEmpty("poisoned")
			if dead := w.deadOfProcess() == 1; dead != gone {
				t.Errorf("the message is blamed: %v", dead)
			}
		})
	}
}

// While a batch is entered into the journal no row is locked. The batch runs the messages that it has entered and can
// still lock, and no others; if it can lock no message it tries again at once.
func TestQuarantineBatchRunsWhatItHasEntered(t *testing.T) {
	w := poisoned(t)
	w.preload(5)
	w.died("1 second")
	w.exec(`CREATE TABLE edda.entry (n int); GRANT ALL ON edda.entry TO PUBLIC`)
	w.exec(`CREATE FUNCTION edda.between() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $f$
		DECLARE n int; BEGIN
			INSERT INTO ` + w.sql("edda.entry") + ` VALUES (1);
			SELECT count(*) INTO n FROM ` + w.sql("edda.entry") + `;
			IF n = 1 THEN -- all of them move
				UPDATE ` + w.sql(w.queue("poisoned")) + ` SET due = due - interval '1 second';
			ELSIF n = 2 THEN -- one comes between them
				INSERT INTO ` + w.sql(w.queue("poisoned")) + ` (due, id, kind, header, body)
				SELECT min(due), 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'poison.innocent', '{}', '{}' FROM ` +
		w.sql(w.queue("poisoned")) + `;
			END IF;
			RETURN NULL; END $f$`)
	w.exec(`CREATE TRIGGER between AFTER INSERT ON edda.in_flight FOR EACH ROW EXECUTE FUNCTION edda.between()`)
	var handled, stray atomic.Int64
	w.start("poisoned", bus.EndpointOptions{Concurrency: 1, Poll: seldom.Poll},
		bus.HandleTx(func(c *bus.Context, _ pgx.Tx, _ innocent) error {
			if w.count(`SELECT count(*) FROM edda.in_flight WHERE $1::text::uuid = ANY (ids)`,
				c.Info().ID.String()) == 0 {
				stray.Add(1)
			}
			handled.Add(1)
			return nil
		}))
	w.untilEmpty("poisoned")
	if handled.Load() < 6 || stray.Load() != 0 {
		t.Errorf("%d messages were handled, %d of them were not in the journal", handled.Load(), stray.Load())
	}
	w.checkJournal()
}
