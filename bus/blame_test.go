package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/jackc/pgx/v5"
)

// crowd installs an endpoint, and puts one message among n others, so that one batch takes them all.
func (w *world) crowd(e *bus.Endpoint, n int) {
	w.t.Helper()
	w.makeQueue(e.Name())
	if err := e.Install(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for i := range n {
		if i == n/2 {
			w.send(place{Order: "7"})
		}
		w.send(add{N: i})
	}
}

// A handler that took too long, and had run a statement, lost the batch with its transaction: the end of its connection
// hid which message was at fault. So the handler was called for ever, or six times where its policy allows one attempt.
func TestOverrunWithAnOpenStatementIsOneAttempt(t *testing.T) {
	t.Parallel()
	overruns := map[string]func(w *world, ctx context.Context, tx pgx.Tx) error{
		"a call of somebody after a statement": func(w *world, ctx context.Context, tx pgx.Tx) error {
			if err := w.note(ctx, tx, 7); err != nil {
				return err
			}
			var session int
			if err := tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&session); err != nil {
				return err
			}
			w.until("the server has ended the transaction", func() bool {
				return w.count(`SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, session) == 0
			})
			return nil
		},
		"a query that ends with its context": func(_ *world, ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
			return err
		},
	}
	for name, overrun := range overruns {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.ledger()
			var calls, cutShort, neighbours atomic.Int64
			e := w.endpoint("slow", bus.EndpointOptions{StepTimeout: time.Second, Policy: oneAttempt(t)},
				bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ place) error {
					err := overrun(w, ctx, tx)
					// on a busy machine the server has ended the idle transaction before this point
					if ctx.Err() == nil {
						cutShort.Add(1)
					} else {
						calls.Add(1)
					}
					return err
				}),
				bus.HandleTx(func(*bus.Context, pgx.Tx, add) error { neighbours.Add(1); return nil }))
			w.crowd(e, 20)
			w.run(e)
			w.untilEmpty("slow")
			if calls.Load() != 1 || neighbours.Load() > 20*(2+cutShort.Load()) {
				t.Errorf("the handler was called %d times for its one attempt, and its 20 neighbours %d times",
					calls.Load(), neighbours.Load())
			}
			w.want(1, `SELECT count(*) FROM edda.dead_letter`)
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE kind = 'order.place' AND attempts = 1
				AND error LIKE 'the handler took longer than StepTimeout%'`)
			w.want(0, `SELECT count(*) FROM edda.ledger`)
		})
	}
}

// under returns a bus of the same schema over a pool with this statement_timeout.
func (w *world) under(timeout time.Duration) *bus.Bus {
	w.t.Helper()
	pool := poolWith(w.t, func(c *pgx.ConnConfig) {
		c.RuntimeParams["statement_timeout"] = fmt.Sprint(
			timeout.Milliseconds())
	})
	b, err := bus.New(pool, bus.Options{Schema: w.schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// startUnder runs an installed endpoint in a process with this statement_timeout. On a busy machine the first
// statements may take longer, and Run returns an error: then startUnder runs it again.
func (w *world) startUnder(timeout time.Duration, name string, o bus.EndpointOptions, part bus.Part) {
	w.t.Helper()
	e, err := bus.NewEndpoint(w.under(timeout), name, o, part)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := e.Run(ctx)
		for pgerr.Code(err) == "57014" && ctx.Err() == nil {
			err = e.Run(ctx)
		}
		ended <- err
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("endpoint %s: %v", name, err)
		}
	})
}

// slowTarget makes a queue in which every insert takes 30 ms for each row.
func (w *world) slowTarget(kind string) {
	w.t.Helper()
	w.makeQueue("targets")
	owner, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err == nil {
		err = owner.InstallQueue(w.t.Context(), "targets", kind)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`CREATE FUNCTION edda.slow() RETURNS trigger
		LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NEW; END'`)
	w.exec(`CREATE TRIGGER slow BEFORE INSERT ON ` + w.queue("targets") + ` FOR EACH ROW EXECUTE FUNCTION edda.slow()`)
}

// A statement_timeout of the role ended the write of a batch, which was then retried at the same size, for ever.
func TestStatementTimeoutMakesTransactionsSmaller(t *testing.T) {
	t.Parallel()
	const n = 60 // rows of 30 ms are 1.8 s in one statement
	t.Run("a batch", func(t *testing.T) {
		w := newWorld(t, bus.Options{})
		w.slowTarget("outside.called")
		o := bus.EndpointOptions{Concurrency: 1, BatchTime: 5 * time.Second, Policy: once}
		part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m add) error { ctx.Send(called{N: m.N}); return nil })
		w.install("sources", part)
		for i := range n {
			w.send(add{N: i})
		}
		w.startUnder(600*time.Millisecond, "sources", o, part)
		w.untilEmpty("sources")
		w.want(n, `SELECT count(*) FROM `+w.queue("targets"))
		w.want(0, `SELECT count(*) FROM edda.dead_letter`)
	})
	t.Run("a finish", func(t *testing.T) {
		w := newWorld(t, bus.Options{})
		w.slowTarget("outside.called")
		var calls atomic.Int64
		gate := make(chan struct{})
		part := bus.Handle(func(ctx *bus.Context, m call) error {
			calls.Add(1)
			<-gate
			ctx.Send(called(m))
			return nil
		})
		w.install("callers", part)
		for i := range n {
			w.send(call{N: i})
		}
		w.startUnder(600*time.Millisecond, "callers", bus.EndpointOptions{Concurrency: n, Policy: once}, part)
		w.until("all handlers run", func() bool { return calls.Load() == n })
		close(gate)
		w.untilEmpty("callers")
		w.want(n, `SELECT count(*) FROM `+w.queue("targets"))
		w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		if calls.Load() != n {
			t.Errorf("%d calls of %d handlers", calls.Load(), n)
		}
	})
}

// Work that a handler defers to the COMMIT may exceed a timeout, end the session or fill the disk. No such error names
// a message, and each batch with it was taken again for ever.
func TestTroubleOfTheWriteIsTracedToItsMessage(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"statement timeout": `RETURN NEW;`, // see below
		"disk full":         `RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'disk full';`,
		"connection lost":   `PERFORM pg_terminate_backend(pg_backend_pid());`,
		"missing table":     `PERFORM FROM nowhere;`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.ledger()
			w.exec(`CREATE FUNCTION edda.trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = 7 THEN ` +
				body + ` END IF; RETURN NEW; END $$`)
			w.exec(`CREATE CONSTRAINT TRIGGER trouble AFTER INSERT ON edda.ledger DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION edda.trouble()`)
			w.slowTarget(called{}.Kind())
			var calls atomic.Int64
			part := bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, m add) error {
				if m.N == 7 {
					calls.Add(1)
				}
				if m.N == 7 && name == "statement timeout" { // a deferred trigger has no statement timeout
					for range 60 {
						ctx.Send(called{})
					}
				}
				return w.note(ctx, tx, m.N)
			})
			w.fill("notes", part, 1, 2, 3, 4, 5, 6, 7, 8, 9)
			w.startUnder(500*time.Millisecond, "notes", bus.EndpointOptions{Policy: once}, part)
			w.untilEmpty("notes")
			if got, want := w.noted(), "1 2 3 4 5 6 8 9"; got != want {
				t.Errorf("noted %q, want %q", got, want)
			}
			w.want(1, `SELECT count(*) FROM edda.dead_letter WHERE attempts = 1 AND convert_from(body,
				'UTF8')::json ->> 'N' = '7'`)
			w.want(1, `SELECT count(*) FROM edda.dead_letter`)
			if n := calls.Load(); n > 12 { // in smaller and smaller batches, then five times for free
				t.Errorf("the handler was called %d times", n)
			}
		})
	}
}

// While a database is full or slow for all, no message is to blame, however long that lasts: no failure of a message is
// stored, because that write fails too.
func TestOutageBlamesNobody(t *testing.T) {
	t.Parallel()
	outage := `CREATE TABLE edda.outage ();
		CREATE SEQUENCE edda.refused;
		GRANT ALL ON edda.outage TO PUBLIC;
		GRANT ALL ON SEQUENCE edda.refused TO PUBLIC;
		CREATE FUNCTION edda.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT FROM edda.outage) THEN
				PERFORM nextval('edda.refused');
				RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'disk full';
			END IF;
			RETURN NULL;
		END $$`
	for name, part := range map[string]bus.Part{
		"a batch":  bus.HandleTx(func(*bus.Context, pgx.Tx, call) error { return nil }),
		"a finish": bus.Handle(func(*bus.Context, call) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.install("victims", part)
			w.exec(outage)
			w.exec(`CREATE TRIGGER refuse BEFORE DELETE ON ` + w.queue("victims") +
				` FOR EACH STATEMENT EXECUTE FUNCTION edda.refuse()`)
			w.exec(`INSERT INTO edda.outage DEFAULT VALUES`)
			for i := range 5 {
				w.send(call{N: i})
			}
			w.start("victims", bus.EndpointOptions{Policy: once}, part)
			w.untilWithin(pgdev.Patience(time.Minute), "it was tried often enough to convict",
				func() bool { return w.count(`SELECT last_value FROM edda.refused`) >= 15 })
			w.exec(`DELETE FROM edda.outage`)
			w.untilEmpty("victims")
			w.want(0, `SELECT count(*) FROM edda.dead_letter`)
		})
	}
}

// An outage may end between the last error that counts and the verdict on it, and begin again. The message was not to
// blame for that either: before the verdict its failure is written on trial, and an error right after that is blamed on
// the message.
func TestOutageThatEndsBeforeTheVerdictBlamesNobody(t *testing.T) {
	t.Parallel()
	refused := map[string]string{ // the numbers of attempts to write
		"before the last trouble": `n <= 5`,
		"before the verdict":      `n <= 6`,
		"after the verdict":       `n <= 7`,
		"for a moment":            `n <= 6 OR n BETWEEN 8 AND 9`,
	}
	for name, part := range map[string]bus.Part{
		"a batch":  bus.HandleTx(func(*bus.Context, pgx.Tx, call) error { return nil }),
		"a finish": bus.Handle(func(*bus.Context, call) error { return nil }),
	} {
		for when, numbers := range refused {
			t.Run(name+" "+when, func(t *testing.T) {
				w := newWorld(t, bus.Options{})
				w.install("victims", part)
				w.exec(`CREATE SEQUENCE edda.refused;
					GRANT ALL ON SEQUENCE edda.refused TO PUBLIC;
					CREATE FUNCTION edda.refuse() RETURNS trigger LANGUAGE plpgsql
					AS $$ DECLARE n bigint := nextval('edda.refused'); BEGIN
						IF ` + numbers + ` THEN
							RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'disk full';
						END IF;
						RETURN NULL;
					END $$`)
				w.exec(`CREATE TRIGGER refuse BEFORE DELETE ON ` + w.queue("victims") +
					` FOR EACH STATEMENT EXECUTE FUNCTION edda.refuse()`)
				w.send(call{})
				w.start("victims", bus.EndpointOptions{Concurrency: 1, Policy: once}, part)
				w.untilWithin(pgdev.Patience(time.Minute), "it is handled",
					func() bool { return w.count(`SELECT count(*) FROM `+w.queue("victims")) == 0 })
				w.want(0, `SELECT count(*) FROM edda.dead_letter`)
			})
		}
	}
}
