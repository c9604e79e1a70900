package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A process that has lost its listening connection listens again, even while Postgres considers the earlier connection
// alive, which holds the lock of the session. The process ends that connection and takes the lock; if it may not, it
// listens without the lock, and logs that.
func TestAProcessHearsWhileAnEarlierConnectionHasItsLock(t *testing.T) {
	for name, role := range map[string]func(testing.TB, *pgxpool.Pool, string) string{
		"it may end the connection":     func(testing.TB, *pgxpool.Pool, string) string { return "" },
		"it may not end the connection": pgtest.Runtime,
	} {
		t.Run(name, func(t *testing.T) {
			log := &kept{}
			w := newWorldOf(t, bus.Options{Logger: log.logger()}, role)
			elsewhere := w.process(w.dsn, bus.Options{}) // LISTEN is for the messages of other processes
			heard := make(chan string, 1)
			w.start("notes", bus.EndpointOptions{Poll: time.Hour}, bus.HandleTx(
				func(_ *bus.Context, _ pgx.Tx, m turn) error { heard <- m.Key; return nil }))
			locked := func() bool { return w.count(`SELECT count(*) FROM edda.session WHERE locked`) == 1 }
			w.until("the session is locked", locked)
			earlier, err := pgx.Connect(t.Context(), w.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = earlier.Close(context.WithoutCancel(t.Context())) }()
			took := make(chan error, 1)
			go func() {
				_, err := earlier.Exec(t.Context(), w.sql(`SELECT pg_advisory_lock(hashtextextended(s.id::text,
					s.tableoid::bigint)) FROM edda.session s`))
				took <- err
			}()
			pgtest.AwaitBlocked(t, w.owner, earlier)
			w.exec(`CREATE SEQUENCE edda.written; CREATE TABLE edda.unlocked (); GRANT ALL ON SEQUENCE edda.written
				TO PUBLIC; GRANT ALL ON edda.unlocked TO PUBLIC`)
			w.exec(`CREATE FUNCTION edda.unlock() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
				IF OLD.locked AND NOT NEW.locked THEN
					IF nextval('edda.written') <= 2 THEN RAISE EXCEPTION 'not now'; END IF;
					INSERT INTO edda.unlocked DEFAULT VALUES;
				END IF; RETURN NULL; END$$`)
			w.exec(`CREATE TRIGGER unlock AFTER UPDATE ON edda.session FOR EACH ROW EXECUTE FUNCTION edda.unlock()`)
			w.exec(`SELECT pg_terminate_backend(p) FROM unnest(pg_blocking_pids($1)) p`, int32(earlier.PgConn().PID()))
			if err := await(w, "the earlier connection has the lock", took); err != nil {
				t.Fatal(err)
			}
			w.untilWithin(pgdev.Patience(5*time.Second), "the log says so", func() bool {
				return strings.Contains(log.String(), "edda: an earlier connection of this process holds the lock")
			})
			w.want(1, `SELECT count(*) FROM edda.unlocked`) // before that connection ended: else the process looks dead
			if _, err := elsewhere.Send(t.Context(), turn{Key: "a"}); err != nil {
				t.Fatal(err)
			}
			await(w, "the message is heard of", heard)
			if name == "it may end the connection" {
				w.untilWithin(pgdev.Patience(5*time.Second), "the session is locked again", func() bool {
					return locked() && earlier.Ping(t.Context()) != nil
				})
			}
			w.want(0, `SELECT count(*) FROM edda.session WHERE died`)
		})
	}
}
