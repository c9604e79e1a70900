package bus_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/faultproxy"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

func inYear(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }

func failed(is error, says ...string) want { return want{"failed", is, says} }

// failure is a result that is no refusal of a message.
func failure(way string, err error) result {
	if err == nil {
		return result{way: way, fate: "no error"}
	}
	return result{way: way, fate: "failed", err: err, text: err.Error()}
}

// Times.
var timeInputs = []badInput{
	{"B28", "a delay of less than nothing", option(saga.Delay(-time.Hour)), fate("stored")},
	{"B28", "the least delay there is", option(saga.Delay(math.MinInt64)), fate("stored")},
	{"B28", "no delay", option(saga.Delay(0)), fate("stored")},
	{"B28", "delays of less than nothing are now", due(saga.Delay(math.MinInt64), -time.Second, time.Second),
		fate("due then")},
	{"B28", "a nanosecond", due(saga.Delay(1), time.Microsecond, time.Second), fate("due then")},
	{"B28", "ten years", due(saga.Delay(3650*24*time.Hour), 3650*24*time.Hour, 3650*24*time.Hour+time.Second),
		fate("due then")},
	{"B28", "a nanosecond more", option(saga.Delay(3650*24*time.Hour + 1)),
		refused(nil, "input.note", "delay", "limit 87600h")},
	{"B28", "292 years", option(saga.Delay(math.MaxInt64)), refused(nil, "delay", "limit 87600h")},
	{"B29", "the zero time", option(saga.At(time.Time{})), refused(nil, "zero time")},
	{"B29", "the year 10000", option(saga.At(inYear(10_000))), refused(nil, "year 10000", "1 to 9999")},
	{"B29", "the year 9999", option(saga.At(inYear(9999))), refused(nil, "limit 87600h")},
	{"B29", "a year before all years", option(saga.At(inYear(-5))), refused(nil, "year -5", "1 to 9999")},
	{"B29", "the last time there is", option(saga.At(time.Unix(1<<62, 0))), refused(nil, "1 to 9999")},
	{"B29", "a time and a delay", message(note{}, saga.At(inYear(2100)), saga.Delay(1)), refused(nil, "not both")},
	{"B29", "a time that has passed, which is now", due(saga.At(inYear(1970)), -time.Second, time.Second),
		fate("due then")},
	{"B30", "a nanosecond past a microsecond", (*inputs).rounded, fate("rounded up")},
}

// due sends with o in every way, and requires that the message is due between two times after its send.
func due(o saga.SendOption, from, to time.Duration) func(*inputs) []result {
	return func(c *inputs) []result {
		return c.dueOf(o, func(before, due, after time.Time) string {
			if due.Before(before.Add(from)) || due.After(after.Add(to)) {
				return "due at " + due.String()
			}
			return "due then"
		})
	}
}

// dueOf calls judge with the due time of each way's message, and the database's clock before and after its send.
func (c *inputs) dueOf(o saga.SendOption, judge func(before, due, after time.Time) string) (results []result) {
	c.t.Helper()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	for _, way := range c.ways() {
		before := c.clock()
		r := way.send(note{}, []saga.SendOption{saga.To(c.name), o})
		r.way = way.name
		if r.fate == "sent" {
			var due time.Time
			if err := c.pool.QueryRow(c.t.Context(), c.sql(`DELETE FROM `+c.queue(c.name)+` RETURNING due`)).Scan(
				&due); err != nil {
				c.t.Fatal(err)
			}
			r.fate = judge(before, due, c.clock())
		}
		results = append(results, r)
	}
	return results
}

func (c *inputs) clock() (now time.Time) {
	c.t.Helper()
	if err := c.pool.QueryRow(c.t.Context(), `SELECT clock_timestamp()`).Scan(&now); err != nil {
		c.t.Fatal(err)
	}
	return now
}

func (c *inputs) rounded() []result {
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	return c.dueOf(saga.At(at.Add(1)), func(_, due, _ time.Time) string {
		if !due.Equal(at.Add(time.Microsecond)) {
			return "due at " + due.String()
		}
		return "rounded up"
	})
}

// Ids, transactions, and ends.
var againInputs = []badInput{
	{"B31", "a message again under its id", (*inputs).twice, fate("duplicate")},
	{"B32", "another message under the same id", (*inputs).twiceOther, refused(bus.ErrIDConflict, "different content")},
	{"B33", "a text that is no id", parsed(secret), failed(nil, "id of 6 bytes", "want xxxxxxxx-xxxx")},
	{"B33", "an id of 4 KB", parsed(secret + text(4090)), failed(nil, "id of 4096 bytes")},
	{"B33", "an id with a letter beyond f", parsed("0190b5a0-7b7c-7cc2-8d5e-0123456789ag"), failed(nil, "hexadecimal")},
	{"B33", "an id without dashes", parsed("0190b5a07b7c7cc28d5e0123456789ab"), failed(nil, "id of 32 bytes")},
	{"B33", "the zero id", option(saga.WithID(saga.ID{})), refused(nil, "WithID")},
	{"B34", "a transaction that has failed", (*inputs).abortedTx, failed(nil, "25P02", "failed before this send")},
	{"B35", "a transaction that has ended", (*inputs).closedTx, failed(nil, "closed")},
	{"B35", "a transaction of database/sql that has ended", (*inputs).closedSQL, failed(sql.ErrTxDone, "input.note")},
	{"B36", "a context that has ended before", (*inputs).cancelledBefore, failed(context.Canceled, "input.note")},
	{"B36", "one that ends when the server has it", cancelledDuring(faultproxy.After), fate("unknown, written")},
	{"B36", "one that ends before the server has it", cancelledDuring(faultproxy.Before), fate("unknown")},
	{"B36", "one that ends right after", (*inputs).cancelledAfter, fate("stored")},
	{"B37", "a pool that is closed", (*inputs).afterClose, failed(nil, "closed pool")},
	{"B37", "a transaction of another pool than the one that is closed", (*inputs).sendAfterClose, fate("stored")},
	{"B37", "a second Run", (*inputs).runTwice, failed(bus.ErrRunning, "in-")},
	{"B37", "a Run after the end of the first", (*inputs).runAgain, fate("handled")},
}

func parsed(id string) func(*inputs) []result {
	return func(*inputs) []result {
		_, err := saga.ParseID(id)
		var into saga.ID
		return []result{failure("ParseID", err), failure("UnmarshalText", into.UnmarshalText([]byte(id)))}
	}
}

// pairs sends first and then second under one id, in every combination of two ways.
func (c *inputs) pairs(first, second saga.Message) (results []result) {
	c.t.Helper()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	for _, before := range c.ways() {
		for _, way := range c.ways() {
			id := newID(c.t)
			o := []saga.SendOption{saga.To(c.name), saga.WithID(id)}
			if r := before.send(first, o); r.fate != "sent" {
				c.t.Errorf("the first, by %s: %s %s", before.name, r.fate, r.text)
			}
			r := way.send(second, o)
			r.way = before.name + ", then " + way.name
			kept := c.count(`SELECT count(*) FROM `+c.queue(c.name)+` WHERE id = $1 AND body = $2`, [16]byte(id),
				[]byte(encoded(first)))
			switch n := c.rows(c.name); {
			case n != 1 || kept != 1:
				r.fate += ", and the first is not alone"
			case r.fate == "sent": // a step gets no report of a duplicate
				r.fate = "duplicate"
			}
			c.exec(`DELETE FROM ` + c.queue(c.name))
			results = append(results, r)
		}
	}
	return results
}

func (c *inputs) twice() []result      { return c.pairs(note{N: 1}, note{N: 1}) }
func (c *inputs) twiceOther() []result { return c.pairs(note{N: 1}, note{N: 2, Text: secret}) }

func (c *inputs) abortedTx() (results []result) {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	for _, publish := range []bool{false, true} {
		tx := c.begin()
		_, _ = tx.Exec(c.t.Context(), `SELECT 1/0`)
		send := c.bus.SendTx
		if publish {
			send = c.bus.PublishTx
		}
		_, err := send(c.t.Context(), tx, note{}, saga.To(c.name))
		results = append(results, failure("SendTx", err))
		_ = tx.Rollback(c.t.Context())
	}
	tx, err := c.db.BeginTx(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	_, _ = tx.ExecContext(c.t.Context(), `SELECT 1/0`)
	_, err = c.bus.SQL(nil).SendTx(c.t.Context(), tx, note{}, saga.To(c.name))
	_ = tx.Rollback()
	c.want(0, `SELECT count(*) FROM `+c.queue(c.name))
	return append(results, failure("SendSQL", err))
}

func (c *inputs) closedTx() []result {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	var ended pgx.Tx
	if err := c.bus.InTx(c.t.Context(), func(tx pgx.Tx) error { ended = tx; return nil }); err != nil {
		c.t.Fatal(err)
	}
	_, err := c.bus.SendTx(c.t.Context(), ended, note{}, saga.To(c.name))
	_, published := c.bus.PublishTx(c.t.Context(), ended, note{}, saga.WithID(newID(c.t)))
	c.want(0, `SELECT count(*) FROM `+c.queue(c.name))
	return []result{failure("SendTx", err), failure("PublishTx", published)}
}

func (c *inputs) closedSQL() []result {
	tx, err := c.db.BeginTx(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = tx.Rollback()
	_, err = c.bus.SQL(nil).SendTx(c.t.Context(), tx, note{})
	return []result{failure("SendSQL", err)}
}

func (c *inputs) cancelledBefore() (results []result) {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	ctx, cancel := context.WithCancel(c.t.Context())
	cancel()
	for way, o := range map[string][]saga.SendOption{"one statement": nil, "a transaction": {saga.WithID(newID(c.t))}} {
		_, err := c.bus.Send(ctx, note{}, append(o, saga.To(c.name))...)
		r := failure(way, err)
		if unknown := (*bus.OutcomeUnknownError)(nil); errors.As(err, &unknown) {
			r.fate = "unknown"
		}
		results = append(results, r)
	}
	c.want(0, `SELECT count(*) FROM `+c.queue(c.name))
	return results
}

// cancelledDuring ends the context while the proxy holds back the deciding statement, or the reply to it.
func cancelledDuring(when faultproxy.When) func(*inputs) []result {
	return func(c *inputs) (results []result) {
		c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
		b, proxy := c.proxied()
		for _, statement := range []string{"insert_one", "commit"} {
			o := []saga.SendOption{saga.To(c.name)}
			if statement == "commit" {
				o = append(o, saga.WithID(newID(c.t)))
			}
			ctx, cancel := context.WithCancel(c.t.Context())
			returned := make(chan struct{})
			proxy.Set(faultproxy.Fault{Statement: statement, When: when,
				Do: faultproxy.Pause(func() { cancel(); <-returned })})
			_, err := b.Send(ctx, note{}, o...)
			close(returned)
			proxy.Set()
			r := failure(statement, err)
			if unknown := (*bus.OutcomeUnknownError)(nil); errors.As(err, &unknown) && !unknown.ID.IsZero() &&
				strings.Contains(r.text, unknown.ID.String()) {
				r.fate = "unknown"
			}
			if when == faultproxy.After && c.rows(c.name) == 1 {
				r.fate += ", written"
			}
			c.exec(`DELETE FROM ` + c.queue(c.name))
			results = append(results, r)
		}
		return results
	}
}

func (c *inputs) cancelledAfter() []result {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	ctx, cancel := context.WithCancel(c.t.Context())
	_, err := c.bus.Send(ctx, note{}, saga.To(c.name))
	cancel()
	r := failure("Send", err)
	if err == nil {
		r.fate = c.takeOut(note{})
	}
	return []result{r}
}

func (c *inputs) afterClose() []result {
	ctx := c.t.Context()
	_, send := c.closed.Send(ctx, note{})
	_, publish := c.closed.Publish(ctx, note{}, saga.WithID(newID(c.t)))
	e, err := bus.NewEndpoint(c.closed, c.name, bus.EndpointOptions{},
		bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	if err != nil {
		c.t.Fatal(err)
	}
	return []result{failure("Send", send), failure("Publish", publish), failure("Install", e.Install(ctx)),
		failure("Run", e.Run(ctx))}
}

// sendAfterClose sends in a transaction of an open pool, and needs nothing of the bus's closed pool.
func (c *inputs) sendAfterClose() []result {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	tx := c.begin()
	_, err := c.closed.SendTx(c.t.Context(), tx, note{}, saga.To(c.name))
	r := failure("SendTx", err)
	if err == nil {
		c.commit(tx)
		r.fate = c.takeOut(note{})
	}
	return []result{r}
}

func (c *inputs) runTwice() []result {
	e := c.endpoint(c.name, bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	c.run(e)
	c.send(note{}, saga.To(c.name))
	c.untilEmpty(c.name) // Run has begun
	return []result{failure("Run", e.Run(c.t.Context()))}
}

func (c *inputs) runAgain() []result {
	e := c.endpoint(c.name, bus.EndpointOptions{Concurrency: 1},
		bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	c.run(e)()
	c.run(e)
	return []result{c.became(c.name, c.send(note{}, saga.To(c.name)).ID)}
}
