package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// inPgx has every way to write a message in a transaction of pgx that the caller has begun.
var inPgx = map[string]func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error{
	"SendTx": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.SendTx(ctx, tx, told{})
		return err
	},
	"SendTx by name": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.SendTx(ctx, tx, told{}, saga.To("listener"))
		return err
	},
	"SendTx with an id": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.SendTx(ctx, tx, told{}, saga.WithID(saga.ID{6: 0x70, 8: 0x80, 15: 1}))
		return err
	},
	"SendAllTx": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.SendAllTx(ctx, tx, []saga.Posting{{Message: told{}}})
		return err
	},
	"SendAllTx with an id": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.SendAllTx(ctx, tx, []saga.Posting{{Message: told{},
			Options: []saga.SendOption{saga.WithID(saga.ID{6: 0x70, 8: 0x80, 15: 2})}}})
		return err
	},
	"SendRawTx": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		return b.SendRawTx(ctx, tx, "listener", bus.RawMessage{Raw: saga.Raw{Name: told{}.Kind(), Body: []byte("{}")}})
	},
	"PublishRawTx": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		return b.SendRawTx(ctx, tx, "*", bus.RawMessage{Raw: saga.Raw{Name: told{}.Kind(), Body: []byte("{}")}})
	},
	"PublishTx": func(ctx context.Context, b *bus.Bus, tx pgx.Tx) error {
		_, err := b.PublishTx(ctx, tx, told{})
		return err
	},
}

// inDatabaseSQL has every way to do so in a transaction of database/sql.
var inDatabaseSQL = map[string]func(ctx context.Context, b *bus.Bus, tx *sql.Tx) error{
	"SendSQL": func(ctx context.Context, b *bus.Bus, tx *sql.Tx) error {
		_, err := b.SQL(nil).SendTx(ctx, tx, told{})
		return err
	},
	"PublishSQL": func(ctx context.Context, b *bus.Bus, tx *sql.Tx) error {
		_, err := b.SQL(nil).PublishTx(ctx, tx, told{})
		return err
	},
}

// The queue and the caller's rows are in one transaction, or the send is refused: no worker would look for a message
// that commits in a different database. A refused send writes nothing there, even if the caller commits all the same.
func TestEveryWayIntoAForeignTransactionIsRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.send(told{}) // the routes are read
	w.exec(`DELETE FROM ` + w.queue("listener"))
	twin := w.anotherDatabase("twin", w.schema) // with the same schema, the same endpoint and the same subscription
	there := &world{t: t, owner: twin, pool: twin, schema: w.schema}
	there.exec(`SELECT edda.create_queue('listener')`)
	there.exec(`INSERT INTO edda.subscription (kind, queue) SELECT $1, id FROM edda.queue`, told{}.Kind())
	bare := w.anotherDatabase("bare")

	for name, send := range inPgx {
		for pool, want := range map[*pgxpool.Pool]error{twin: bus.ErrOtherDatabase, bare: nil} {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = send(t.Context(), w.bus, tx)
			if end := tx.Commit(t.Context()); want != nil && end != nil {
				t.Errorf("%s: commit: %v", name, end) // the bus refused it, so no statement of Postgres has failed
			}
			judgeForeign(t, name, err, want)
		}
	}
	for name, send := range inDatabaseSQL {
		for pool, want := range map[*pgxpool.Pool]error{twin: bus.ErrOtherDatabase, bare: nil} {
			db := stdlib.OpenDBFromPool(pool)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			err = send(t.Context(), w.bus, tx)
			if end := tx.Commit(); want != nil && end != nil {
				t.Errorf("%s: commit: %v", name, end)
			}
			judgeForeign(t, name, err, want)
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	there.want(0, `SELECT (SELECT count(*) FROM `+there.queue("listener")+`) + (SELECT count(*) FROM edda.sent_id)`)
	w.want(0, `SELECT (SELECT count(*) FROM `+w.queue("listener")+`) + (SELECT count(*) FROM edda.sent_id)`)
}

// judgeForeign requires that err is want, or any error if want is nil.
func judgeForeign(t *testing.T, name string, err, want error) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: %v, want ErrOtherDatabase, or any error where there is no schema", name, err)
	}
}

// Two buses on two schemas of one database can share a transaction. Both messages are written, or neither.
func TestTwoBusesOfOneDatabaseShareATransaction(t *testing.T) {
	w := newWorld(t, bus.Options{})
	other := w.anotherSchema()
	w.listener()
	other.listener()
	for _, commit := range []bool{false, true} {
		tx, err := w.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, send := range inPgx {
			if err := errors.Join(send(t.Context(), w.bus, tx), send(t.Context(), other.bus, tx)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 0
		if commit {
			want = len(inPgx)
		}
		for _, each := range []*world{w, other} {
			each.want(want, `SELECT count(*) FROM `+each.queue("listener"))
		}
	}
}

// A handler's transaction is not the caller's: a step sends by its context, so that the send is undone with the step.
// Every bus refuses that transaction.
func TestTransactionOfAHandlerIsRefused(t *testing.T) {
	w := newWorld(t, bus.Options{})
	other := w.anotherSchema()
	w.listener()
	other.listener()
	refused := make(chan string, 100)
	w.start("counts", bus.EndpointOptions{}, bus.HandleTx(func(ctx *bus.Context, tx pgx.Tx, _ add) error {
		defer close(refused)
		nested, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		for name, send := range inPgx {
			for _, b := range []*bus.Bus{w.bus, other.bus} {
				for what, t := range map[string]pgx.Tx{"its own": tx, "a nested one": nested} {
					if err := send(ctx, b, t); err == nil || !strings.Contains(err.Error(), "ctx.Send") {
						refused <- name + " in " + what + ": " + errorText(err) + ", want that it names ctx.Send"
					}
				}
			}
		}
		return nested.Commit(ctx)
	}))
	w.send(add{Key: "a"})
	for fault := range refused {
		t.Error(fault)
	}
	w.untilEmpty("counts")
	for _, each := range []*world{w, other} {
		each.want(0, `SELECT count(*) FROM `+each.queue("listener"))
	}
}

// A nil transaction caused a panic inside of the call.
func TestTransactionThatIsNilIsAnError(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	w.send(told{}) // the routes are read
	for name, send := range inPgx {
		for _, tx := range []pgx.Tx{nil, (*pgxpool.Tx)(nil)} {
			if err := send(t.Context(), w.bus, tx); err == nil || !strings.Contains(err.Error(), "transaction is nil") {
				t.Errorf("%s in %T: %s", name, tx, errorText(err))
			}
		}
	}
	for name, send := range inDatabaseSQL {
		if err := send(t.Context(), w.bus, nil); err == nil || !strings.Contains(err.Error(), "transaction is nil") {
			t.Errorf("%s: %s", name, errorText(err))
		}
	}
	if _, err := w.bus.InboxTx(t.Context(), nil, "somewhere", "7"); err == nil ||
		!strings.Contains(err.Error(), "transaction is nil") {
		t.Errorf("InboxTx: %s", errorText(err))
	}
}

func errorText(err error) string {
	if err == nil {
		return "accepted"
	}
	return err.Error()
}

// anotherSchema returns a separate world in the same database.
func (w *world) anotherSchema() *world {
	w.t.Helper()
	other := &world{t: w.t, owner: w.owner, pool: w.owner, schema: pgdev.Schema(w.t)}
	pgtest.Migrate(w.t, w.owner, other.schema)
	other.bus = other.newBus(bus.Options{Schema: other.schema})
	return other
}

// anotherDatabase returns a pool of a new database, with these schemas migrated in it.
func (w *world) anotherDatabase(what string, schemas ...string) *pgxpool.Pool {
	w.t.Helper()
	name := w.schema + "_" + what
	w.createDatabase(name)
	config, err := pgxpool.ParseConfig(pgdev.DSN(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	config.MaxConns, config.ConnConfig.Database = 4, name
	pool, err := pgxpool.NewWithConfig(w.t.Context(), config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		pool.Close()
		if _, err := w.owner.Exec(context.Background(), `DROP DATABASE `+pgx.Identifier{name}.Sanitize()+
			` WITH (FORCE)`); err != nil {
			w.t.Error(err)
		}
	})
	for _, schema := range schemas {
		pgtest.Migrate(w.t, pool, schema)
	}
	return pool
}

// The first sends of a process read the subscriptions. If each of them has a transaction open, and together they have
// all connections of the pool, they must not wait there for one more.
func TestFirstSendsNeedNoOtherConnection(t *testing.T) {
	w := newWorld(t, bus.Options{})
	w.listener()
	config := w.pool.Config().Copy()
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), pgdev.Patience(20*time.Second))
	defer cancel()
	fresh := func() *bus.Bus {
		b, err := bus.New(pool, bus.Options{Schema: w.schema})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for range 3 {
		b := fresh()
		group, inside := make(chan error, config.MaxConns), make(chan struct{}, config.MaxConns)
		both := make(chan struct{})
		for range config.MaxConns {
			go func() {
				group <- b.InTx(ctx, func(tx pgx.Tx) error {
					inside <- struct{}{}
					<-both
					_, err := b.SendTx(ctx, tx, told{})
					return err
				})
			}()
		}
		for range config.MaxConns {
			await(w, "a transaction", inside)
		}
		close(both)
		for range config.MaxConns {
			if err := <-group; err != nil {
				t.Fatalf("with all connections in transactions: %v", err)
			}
		}
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }()
	b := fresh()
	var open []*sql.Tx
	for range config.MaxConns {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, tx)
	}
	for _, tx := range open {
		if _, err := b.SQL(nil).SendTx(ctx, tx, told{}); err != nil {
			t.Errorf("in a transaction of database/sql: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
}
