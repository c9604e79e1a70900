package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Inputs in the configuration of a program.
var optionInputs = []badInput{
	{"B17", "two handlers of one kind", parts(handlesNote(), handlesNote()),
		failed(nil, "kind input.note has two consumers")},
	{"B17", "a handler and a saga of one kind", (*inputs).handlerAndSaga,
		failed(nil, "kind input.open has two consumers")},
	{"B17", "a saga twice", (*inputs).sagaTwice, failed(nil, "is given twice")},
	{"B17", "a saga with two handlers of one kind", (*inputs).twoOfAKind,
		failed(nil, "kind input.open has two handlers")},
	{"B17", "nothing", parts(), failed(nil, "handles no message")},
	{"B18", "names that are no names", (*inputs).wrongNames, failed(nil, "1 to 63")},
	{"B21", "schemas that are no schemas", (*inputs).wrongSchemas, failed(nil, "schema name")},
	{"B21", "a schema with a quote and a space, and one that is a word of SQL", (*inputs).weirdSchemas,
		fate("all is well")},
	{"B35", "another database, and another one without the schema", (*inputs).otherDatabase, failed(nil, "input.note")},
	{"B38", "retries that make no sense", (*inputs).wrongRetries, failed(nil, "want")},
	{"B38", "a longest delay that is shorter than the first",
		retries(recoverability.Retries{Delayed: 2, Step: time.Minute, Max: time.Second}),
		failed(nil, "Max 1s", "shorter than Step 1m0s")},
	{"B39", "more workers than connections", options(bus.EndpointOptions{Concurrency: 11}),
		failed(nil, "Concurrency is 11", "the pool has 10 connections")},
	{"B39", "many more", options(bus.EndpointOptions{Concurrency: 100_000}),
		failed(nil, "Concurrency is 100000", "the pool has 10 connections")},
	{"B39", "fewer workers than none", options(bus.EndpointOptions{Concurrency: -1}),
		failed(nil, "Concurrency is -1", "0 is the default")},
	{"B39", "no number, which is the default", options(bus.EndpointOptions{}), fate("no error")},
	{"B43", "BatchMax", options(bus.EndpointOptions{BatchMax: -1}), failed(nil, "BatchMax is -1, want 0 to 60")},
	{"B43", "BatchMax beyond the savepoints", options(bus.EndpointOptions{BatchMax: 61}),
		failed(nil, "BatchMax is 61, want 0 to 60")},
	{"B43", "BatchBytes", options(bus.EndpointOptions{BatchBytes: math.MaxInt}),
		failed(nil, "BatchBytes", "want 0 to 268435456")},
	{"B43", "times of less than nothing", options(bus.EndpointOptions{BatchTime: -1, StepTimeout: -1, Drain: -1,
		Poll:               -1,
		UnknownKindTimeout: -1}),
		failed(nil, "BatchTime", "StepTimeout", "Drain", "Poll", "UnknownKindTimeout")},
	{"B43", "times without end", options(bus.EndpointOptions{BatchTime: math.MaxInt64, StepTimeout: math.MaxInt64}),
		failed(nil, "BatchTime", "StepTimeout")},
	{"B43", "conflicts beyond the column", options(bus.EndpointOptions{MaxConflicts: math.MaxInt32 + 1}),
		failed(nil, "MaxConflicts is 2147483648")},
}

func handlesNote() bus.Part {
	return bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil })
}

func parts(p ...bus.Part) func(*inputs) []result {
	return func(c *inputs) []result {
		_, err := bus.NewEndpoint(c.bus, c.name, bus.EndpointOptions{}, p...)
		return []result{faults("NewEndpoint", err)}
	}
}

func options(o bus.EndpointOptions) func(*inputs) []result {
	return func(c *inputs) []result {
		_, err := bus.NewEndpoint(c.bus, c.name, o, handlesNote())
		return []result{faults("NewEndpoint", err)}
	}
}

// faults is a failure that may have a line for each fault.
func faults(way string, err error) result {
	r := failure(way, err)
	r.text = strings.ReplaceAll(r.text, "\n", "; ")
	return r
}

func (c *inputs) handlerAndSaga() []result {
	return parts(bus.Saga(c.jars()), bus.HandleTx(func(*bus.Context, pgx.Tx, opening) error { return nil }))(c)
}

func (c *inputs) sagaTwice() []result { return parts(bus.Saga(c.jars()), bus.Saga(c.jars()))(c) }

func (c *inputs) twoOfAKind() []result {
	start := saga.StartedBy(func(m opening) string { return m.Key },
		func(*jar, *saga.Context, opening) error { return nil })
	return parts(bus.Saga(saga.Define(c.name, saga.Options{}, start, start)))(c)
}

var wrongNames = []string{"", "Orders", "orders ", "9orders", `orders"; drop table x;--`, "../orders", "\u00f6rders",
	text(64), text(10_000), "or\x00ders"}

func (c *inputs) wrongNames() (results []result) {
	for _, name := range wrongNames {
		_, endpoint := bus.NewEndpoint(c.bus, name, bus.EndpointOptions{}, handlesNote())
		_, route := bus.New(c.pool, bus.Options{Routes: []bus.Routing{bus.Route[note](name)}})
		results = append(results, faults("NewEndpoint", endpoint), faults("Route", route))
	}
	return results
}

func (c *inputs) wrongSchemas() (results []result) {
	for _, name := range []string{"pg_catalog", "information_schema", text(64), "a\x00b", "a$$b", "a\nb", invalid} {
		_, err := bus.New(c.pool, bus.Options{Schema: name})
		results = append(results, faults("New", err))
	}
	return results
}

func retries(all ...recoverability.Retries) func(*inputs) []result {
	return func(*inputs) (results []result) {
		for _, r := range all {
			_, err := r.Policy()
			results = append(results, faults("Policy", err))
		}
		return results
	}
}

func (c *inputs) wrongRetries() []result {
	return retries(recoverability.Retries{Immediate: -1}, recoverability.Retries{Immediate: 1 << 31},
		recoverability.Retries{Delayed: -1, Step: 1},
		recoverability.Retries{Delayed: 1 << 31, Step: 1},
		recoverability.Retries{Immediate: 100_000, Delayed: 100_000, Step: 1},
		recoverability.Retries{Delayed: 1, Step: -1}, recoverability.Retries{Delayed: 1, Step: math.MaxInt64})(c)
}

// database creates a database on the server of the tests, with these schemas in it.
func (c *inputs) database(schemas ...string) *pgxpool.Pool {
	c.t.Helper()
	name := c.schema + strings.ReplaceAll(c.name, "-", "_") + string(rune('a'+len(schemas)))
	c.createDatabase(name)
	config, err := pgxpool.ParseConfig(pgdev.DSN(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	config.MaxConns, config.ConnConfig.Database = 4, name
	pool, err := pgxpool.NewWithConfig(c.t.Context(), config)
	if err != nil {
		c.t.Fatal(err)
	}
	outer := c.owner
	c.t.Cleanup(func() {
		pool.Close()
		if _, err := outer.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			c.t.Error(err)
		}
	})
	for _, schema := range schemas {
		pgtest.Migrate(c.t, pool, schema)
	}
	return pool
}

// weirdSchemas sends, publishes, handles, starts an instance and dead-letters a message in schemas whose names need
// quotes.
func (c *inputs) weirdSchemas() (results []result) {
	names := []string{`weird"x y`, "select", "ünï%s'--"}
	pool := c.database(names...)
	for _, schema := range names {
		w := &world{t: c.t, owner: pool, pool: pool, schema: schema}
		w.bus = w.newBus(bus.Options{Schema: schema, AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
			Events: func(e event.Event) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.events = append(w.events, e)
			}})
		w.run(w.endpoint("notes", bus.EndpointOptions{Concurrency: 2, Policy: once}, bus.Saga(c.jars()),
			bus.HandleTx(func(_ *bus.Context, _ pgx.Tx, m note) error {
				if m.Text == "bad" {
					return errNo
				}
				return nil
			})))
		here := *c
		here.world, here.db = w, c.openDB(pool)
		if r := here.became("notes", w.send(opening{Key: "k"}).ID); r.fate != "handled" {
			c.t.Errorf("%s: the saga: %+v", schema, r)
		}
		if _, err := w.bus.Publish(c.t.Context(), note{}); err != nil {
			c.t.Errorf("%s: %v", schema, err)
		}
		r := here.became("notes", w.send(note{Text: "bad"}, saga.WithID(newID(c.t))).ID)
		if r := here.ways()[2].send(note{}, nil); r.fate != "sent" {
			c.t.Errorf("%s: SendSQL: %+v", schema, r)
		}
		w.untilEmpty("notes")
		if r.fate == "dead after 1" && w.count(`SELECT count(*) FROM edda.saga`) == 1 &&
			w.count(`SELECT count(*) FROM edda.dead_letter`) == 1 {
			r = result{fate: "all is well"}
		}
		r.way = schema
		results = append(results, r)
	}
	return results
}

// otherDatabase sends through transactions of databases other than the bus's. One has the same schema, with the same
// queue.
func (c *inputs) otherDatabase() (results []result) {
	c.install(c.name, handlesNote())
	for way, pool := range map[string]*pgxpool.Pool{"same schema": c.database(c.schema), "no schema": c.database()} {
		db := c.openDB(pool)
		there := &world{t: c.t, owner: pool, pool: pool, schema: c.schema}
		if way == "same schema" {
			there.exec(`SELECT edda.create_queue($1)`, c.name)
		}
		for _, sendWay := range []string{"SendTx", "SendSQL"} {
			err := c.sendThrough(sendWay, pool, db)
			r := failure(way+", "+sendWay, err)
			if way == "same schema" && !errors.Is(err, bus.ErrOtherDatabase) {
				r.fate = "not told that it is another database"
			}
			results = append(results, r)
		}
		if way == "same schema" {
			there.want(0, `SELECT count(*) FROM `+there.queue(c.name))
		}
	}
	c.want(0, `SELECT count(*) FROM `+c.queue(c.name))
	return results
}

func (c *inputs) sendThrough(way string, pool *pgxpool.Pool, db *sql.DB) (err error) {
	c.t.Helper()
	ctx := c.t.Context()
	if way == "SendTx" {
		end := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err = c.bus.SendTx(ctx, tx, note{}, saga.To(c.name))
			return nil // commits all the same
		})
		if end != nil && err == nil {
			c.t.Error(end)
		}
		return err
	}
	tx, begin := db.BeginTx(ctx, nil)
	if begin != nil {
		c.t.Fatal(begin)
	}
	_, err = c.bus.SQL(nil).SendTx(ctx, tx, note{}, saga.To(c.name))
	_ = tx.Commit()
	return err
}
