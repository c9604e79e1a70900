package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

// work is the caller's transaction: its own table, and Edda.
type work struct {
	exec func(sql string, args ...any) error
	read func(sql string) (int, error)
	send func(m saga.Message, o ...saga.SendOption) (saga.Sent, error)
}

// transact runs a transaction in which rows are written and messages sent. dsn is the database that it connects to.
type transact func(ctx context.Context, s shop, fn func(work) error, level ...sql.IsolationLevel) error

// shop is a program that has tables of its own.
type shop struct {
	*world
	bus *bus.Bus
	dsn string
}

var transacts = map[string]transact{
	"InTx": func(ctx context.Context, s shop, fn func(work) error, level ...sql.IsolationLevel) error {
		return s.bus.InTx(ctx, func(tx pgx.Tx) error {
			return fn(work{
				exec: func(sql string, args ...any) error { _, err := tx.Exec(ctx, s.sql(sql), args...); return err },
				read: func(sql string) (n int, err error) {
					err = tx.QueryRow(ctx, s.sql(sql)).Scan(&n)
					return n,
						err
				},
				send: func(m saga.Message, o ...saga.SendOption) (saga.Sent,
					error) {
					return s.bus.SendTx(ctx, tx, m, o...)
				},
			})
		}, level...)
	},
	"InSQL over pgx":    inSQLOver("pgx"),
	"InSQL over lib/pq": inSQLOver("postgres"),
}

func inSQLOver(driver string) transact {
	return func(ctx context.Context, s shop, fn func(work) error, level ...sql.IsolationLevel) error {
		db, err := sql.Open(driver, s.dsn)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return s.bus.SQL(db).InTx(ctx, func(tx *sql.Tx) error {
			return fn(work{
				exec: func(sql string, args ...any) error {
					_,
						err := tx.ExecContext(ctx, s.sql(sql), args...)
					return err
				},
				read: func(sql string) (n int,
					err error) {
					err = tx.QueryRowContext(ctx, s.sql(sql)).Scan(&n)
					return n, err
				},
				send: func(m saga.Message, o ...saga.SendOption) (saga.Sent,
					error) {
					return s.bus.SQL(nil).SendTx(ctx, tx, m, o...)
				},
			})
		}, level...)
	}
}

// eachTransact runs a test for each way, in a world with an endpoint that does not run and a table of the shop's own.
func eachTransact(t *testing.T, test func(t *testing.T, in transact, s shop)) {
	t.Parallel()
	for name, in := range transacts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, bus.Options{})
			w.listener()
			w.exec(`CREATE TABLE edda.shop_order (id text PRIMARY KEY, cents int NOT NULL)`)
			w.exec(`GRANT ALL ON edda.shop_order TO PUBLIC`)
			test(t, in, shop{world: w, bus: w.bus, dsn: pgdev.DSN(t)})
		})
	}
}

func (s shop) has(orders, messages int) {
	s.t.Helper()
	s.want(orders, `SELECT count(*) FROM edda.shop_order`)
	if n := s.rows("listener"); n != messages {
		s.t.Errorf("%d messages, want %d", n, messages)
	}
}

// putOrder writes an order and its message.
func putOrder(w work, id string, o ...saga.SendOption) error {
	if err := w.exec(`INSERT INTO edda.shop_order VALUES ($1, 5)`, id); err != nil {
		return err
	}
	_, err := w.send(told{Key: id}, o...)
	return err
}

func TestTransactionHoldsRowAndMessageOrNothing(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		refused := errors.New("the shop is closed")
		err := in(t.Context(), s, func(w work) error { return errors.Join(putOrder(w, "a"), refused) })
		if !errors.Is(err, refused) {
			t.Errorf("%v, want the error of the caller", err)
		}
		s.has(0, 0)
		func() {
			defer func() {
				if r := recover(); r != "out of paper" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = in(t.Context(), s, func(w work) error { _ = putOrder(w, "b"); panic("out of paper") })
		}()
		s.has(0, 0)
		if err := in(t.Context(), s, func(w work) error { return putOrder(w, "c") }); err != nil {
			t.Error(err)
		}
		s.has(1, 1)
	})
}

// A worker whose next poll is in an hour is woken right after the commit, however long the transaction was.
func TestTransactionWakesAWorkerAfterItsCommit(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		got := make(chan bool, 1)
		s.start("listener", seldom, bus.HandleTx(func(*bus.Context, pgx.Tx, told) error { got <- true; return nil }))
		s.send(told{})
		await(s.world, "the first message", got)
		s.until("the worker is idle", func() bool { return len(eventsOf[event.BatchDone](s.world)) > 0 })
		err := in(t.Context(), s, func(w work) error {
			if err := putOrder(w, "a"); err != nil {
				return err
			}
			begun := s.text(`SELECT clock_timestamp()::text`)
			s.until("all wake-ups that a send plans by itself are over", func() bool {
				return s.count(`SELECT count(*) WHERE clock_timestamp() > $1::text::timestamptz + interval '150 ms'`,
					begun) == 1
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		await(s.world, "the message", got)
	})
}

// A rollback to a savepoint undoes the sends after it, and no others.
func TestSavepointTakesItsSendsBack(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		err := in(t.Context(), s, func(w work) error {
			return errors.Join(putOrder(w, "a"), w.exec(`SAVEPOINT maybe`), putOrder(w, "b"),
				w.exec(`ROLLBACK TO maybe`), putOrder(w, "c"))
		})
		if err != nil {
			t.Fatal(err)
		}
		s.has(2, 2)
	})
}

// skew makes the transaction fail: a concurrent transaction reads and writes the rows that this one has read and will
// write.
func (s shop) skew(w work, id string) error {
	if _, err := w.read(`SELECT count(*) FROM edda.shop_order`); err != nil {
		return err
	}
	err := pgx.BeginTxFunc(s.t.Context(), s.owner, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		s.execTx(tx, `INSERT INTO edda.shop_order SELECT 'other' || count(*), 1 FROM edda.shop_order`)
		return nil
	})
	return errors.Join(err, putOrder(w, id))
}

func TestSerializableTransactionIsRepeated(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		calls := 0
		err := bus.RetryRaces(t.Context(), 3, func() error {
			return in(t.Context(), s, func(w work) error {
				if calls++; calls <= 2 {
					return s.skew(w, "a")
				}
				return putOrder(w, "a")
			}, sql.LevelSerializable)
		})
		if err != nil || calls != 3 {
			t.Errorf("%v after %d calls, want 3", err, calls)
		}
		s.has(3, 1)
		err = in(t.Context(), s, func(w work) error { calls++; return s.skew(w, "b") },
			sql.LevelSerializable)
		if pgerr.ClassOf(err) != pgerr.Race || calls != 4 {
			t.Errorf("%v after %d calls, want a serialization failure and no second call", err, calls-3)
		}
		s.has(4, 1)
	})
}

func TestErrorOfTheCallerIsNotRepeated(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		calls := 0
		fails := func() error {
			return in(t.Context(), s, func(w work) error { calls++; return w.exec(`SELECT 1/0`) })
		}
		err := bus.RetryRaces(t.Context(), 5, fails)
		if pgerr.Code(err) != "22012" || calls != 1 {
			t.Errorf("%v after %d calls", err, calls)
		}
		at := func(levels ...sql.IsolationLevel) error {
			return in(t.Context(), s, func(work) error { calls++; return nil }, levels...)
		}
		for text, err := range map[string]error{
			"no isolation level": at(sql.LevelLinearizable),
			"2 isolation levels": at(sql.LevelSerializable, sql.LevelReadCommitted),
			"0 attempts":         bus.RetryRaces(t.Context(), 0, fails),
			"the *sql.DB is nil": s.bus.SQL(nil).InTx(t.Context(), func(*sql.Tx) error { calls++; return nil }),
		} {
			if err == nil || !strings.Contains(err.Error(), text) || calls != 1 {
				t.Errorf("%v after %d calls, want one that says %q", err, calls, text)
			}
		}
	})
}

// The browser disconnects between the send and the commit: nothing is written, and the outcome is known.
func TestContextThatEndsBeforeTheCommit(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := in(ctx, s, func(w work) error { err := putOrder(w, "a"); cancel(); return err })
		var unknown *bus.OutcomeUnknownError
		if !errors.Is(err, context.Canceled) || errors.As(err, &unknown) {
			t.Errorf("%v, want the end of the context", err)
		}
		s.until("the transaction is over", func() bool {
			return s.count(`SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'
				AND position($1 IN query) > 0`, s.schema) == 0
		})
		s.has(0, 0)
	})
}

// The same request twice, at once or later, is one order and one message.
func TestSameRequestTwiceIsOneMessage(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		id := newID(t)
		request := func() (sent saga.Sent, err error) {
			err = in(t.Context(), s, func(w work) (err error) {
				if sent, err = w.send(told{Key: "a"}, saga.WithID(id)); err != nil || sent.Duplicate {
					return err
				}
				return w.exec(`INSERT INTO edda.shop_order VALUES ('a', 5)`)
			}, sql.LevelReadCommitted) // at a higher level a race for an id is a serialization failure
			return sent, err
		}
		fresh := make(chan bool, 4)
		for range 4 {
			go func() {
				sent, err := request()
				if err != nil {
					t.Error(err)
				}
				fresh <- !sent.Duplicate
			}()
		}
		n := 0
		for range 4 {
			if await(s.world, "an answer", fresh) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of 4 requests were the first", n)
		}
		s.has(1, 1)
	})
}

// The reply to the COMMIT was lost, and the caller repeats everything.
func TestTransactionOfUnknownOutcomeIsDoneAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultproxy.Action{"it was committed": faultproxy.DropReply,
		"it was not committed": faultproxy.Swallow} {
		t.Run(name, func(t *testing.T) {
			eachTransact(t, func(t *testing.T, in transact, s shop) {
				b, proxy := s.proxied()
				through := shop{world: s.world, bus: b, dsn: proxy.DSN(pgdev.DSN(t))}
				id := newID(t)
				request := func(w work) error {
					sent, err := w.send(told{Key: "a"}, saga.WithID(id))
					if err != nil || sent.Duplicate {
						return err
					}
					return w.exec(`INSERT INTO edda.shop_order VALUES ('a', 5)`)
				}
				proxy.Set(faultproxy.Fault{Statement: "commit", Do: fault})
				err := bus.RetryRaces(t.Context(), 3, func() error { return in(t.Context(), through, request) })
				var unknown *bus.OutcomeUnknownError
				if !errors.As(err, &unknown) ||
					!strings.Contains(err.Error(), "the outcome of the transaction is unknown") {
					t.Fatalf("%v, want an OutcomeUnknownError; broken: %v", err, proxy.Fired())
				}
				proxy.Set()
				if err := in(t.Context(), through, request); err != nil {
					t.Fatal(err)
				}
				s.has(1, 1)
			})
		})
	}
}

func TestSendInATransactionThatHasEnded(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		var kept work
		if err := in(t.Context(), s, func(w work) error { kept = w; return putOrder(w, "a") }); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.send(told{}); err == nil || !strings.Contains(err.Error(), "the transaction has ended") {
			t.Errorf("%v, want one that says that the transaction has ended", err)
		}
		s.has(1, 1)
	})
}

// The bus forgets a transaction's queues when the transaction ends.
func TestNothingIsKeptOfTransactions(t *testing.T) {
	eachTransact(t, func(t *testing.T, in transact, s shop) {
		for _, err := range []error{nil, errors.New("no")} {
			_ = in(t.Context(), s, func(w work) error { return errors.Join(putOrder(w, time.Now().String()), err) })
		}
		if n := bus.TransactionsWatched(s.bus); n != 0 {
			t.Errorf("%d transactions are remembered", n)
		}
	})
}
