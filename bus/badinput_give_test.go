package bus_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

type note struct {
	Key, Text string
	N         int
	F         float64
	At        time.Time
}
type opening note // the same fields, for a saga
type loop struct{ Next *loop }
type blank struct{}
type relayed struct{ N int }
type sagaRelayed struct{ N int }

func (note) Kind() string        { return "input.note" }
func (opening) Kind() string     { return "input.open" }
func (loop) Kind() string        { return "input.loop" }
func (blank) Kind() string       { return "input.blank" }
func (relayed) Kind() string     { return "input.relay" }
func (sagaRelayed) Kind() string { return "input.saga" }

type jar struct {
	Text string
	Sum  int
	F    float64
}

// give sends a message in one of the ways.
type give func(m saga.Message, o ...saga.SendOption)

// inputs gives the input of a row in all ways. name is the endpoint and the saga of the row.
type inputs struct {
	*world
	name   string
	db     *sql.DB
	closed *bus.Bus // over a closed pool: every refusal comes before any SQL
	steps  *steps
}

// steps are the functions that the forwarding endpoint runs, by number.
type steps struct {
	mu sync.Mutex
	do []func(give)
}

func (s *steps) add(f func(give)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = append(s.do, f)
	return len(s.do) - 1
}

func (s *steps) run(n int, g give) {
	s.mu.Lock()
	f := s.do[n]
	s.mu.Unlock()
	f(g)
}

func newInputs(w *world) *inputs {
	g := &inputs{world: w, steps: &steps{}}
	g.db = g.openDB(w.pool)
	pool, err := pgxpool.New(w.t.Context(), pgdev.DSN(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	pool.Close()
	if g.closed, err = bus.New(pool, bus.Options{Schema: w.schema}); err != nil {
		w.t.Fatal(err)
	}
	sagas := saga.Define("forward", saga.Options{},
		saga.StartedBy(func(m sagaRelayed) string { return fmt.Sprint(m.N) },
			func(_ *jar, ctx *saga.Context, m sagaRelayed) error {
				g.steps.run(m.N, func(m saga.Message, o ...saga.SendOption) { ctx.Send(m, o...) })
				return nil
			}))
	w.start("forward", bus.EndpointOptions{Concurrency: 1}, bus.Saga(sagas),
		bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, m relayed) error {
			g.steps.run(m.N, func(m saga.Message, o ...saga.SendOption) { ctx.Send(m, o...) })
			return nil
		}))
	return g
}

func (c *inputs) openDB(pool *pgxpool.Pool) *sql.DB {
	db := stdlib.OpenDBFromPool(pool)
	c.t.Cleanup(func() { _ = db.Close() })
	return db
}

// all sends m in every way. It requires that the row's queue has the message with the same bytes, and removes it.
func (c *inputs) all(m saga.Message, o ...saga.SendOption) []result {
	c.t.Helper()
	return c.allWith(m, func() []saga.SendOption { return o })
}

func (c *inputs) allWith(m saga.Message, options func() []saga.SendOption) []result {
	c.t.Helper()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	with := func() []saga.SendOption { return append([]saga.SendOption{saga.To(c.name)}, options()...) }
	var results []result
	for _, way := range c.ways() {
		r := way.send(m, with())
		r.way = way.name
		if r.fate == "sent" {
			r.fate = c.takeOut(m)
		}
		results = append(results, r)
	}
	if results[0].fate == "refused" {
		_, err := c.closed.Send(c.t.Context(), m, with()...)
		results = append(results, refusal("before any SQL", err))
	}
	return results
}

type inputWay struct {
	name string
	send func(m saga.Message, o []saga.SendOption) result
}

func (c *inputs) ways() []inputWay {
	ctx := c.t.Context()
	return []inputWay{
		{"Send", func(m saga.Message, o []saga.SendOption) result {
			sent, err := c.bus.Send(ctx, m, o...)
			return receipt(sent, err)
		}},
		{"SendTx", func(m saga.Message, o []saga.SendOption) (r result) {
			if err := c.bus.InTx(ctx, func(tx pgx.Tx) error {
				sent, err := c.bus.SendTx(ctx, tx, m, o...)
				r = receipt(sent, err)
				return nil // a refused send has not touched the transaction
			}); err != nil {
				c.t.Error(err)
			}
			return r
		}},
		{"SendSQL", func(m saga.Message, o []saga.SendOption) result {
			tx, err := c.db.BeginTx(ctx, nil)
			if err != nil {
				c.t.Fatal(err)
			}
			sent, err := c.bus.SQL(nil).SendTx(ctx, tx, m, o...)
			if end := tx.Commit(); end != nil && err == nil {
				c.t.Error(end)
			}
			return receipt(sent, err)
		}},
		{"handler", func(m saga.Message, o []saga.SendOption) result {
			return c.inStep(m, o, func(n int) saga.Message { return relayed{n} })
		}},
		{"saga", func(m saga.Message, o []saga.SendOption) result {
			return c.inStep(m, o, func(n int) saga.Message { return sagaRelayed{n} })
		}},
	}
}

func receipt(sent saga.Sent, err error) result {
	switch {
	case err != nil:
		return refusal("", err)
	case sent.Duplicate:
		return result{fate: "duplicate"}
	}
	return result{fate: "sent"}
}

func refusal(way string, err error) result {
	if err == nil {
		return result{way: way, fate: "sent"}
	}
	return result{way: way, fate: "refused", err: err, text: err.Error()}
}

// inStep lets the forwarding endpoint send m. A fault of a send fails its step permanently.
func (c *inputs) inStep(m saga.Message, o []saga.SendOption, ask func(n int) saga.Message) result {
	n := c.steps.add(func(g give) { g(m, o...) })
	r := c.became("forward", c.send(ask(n), saga.To("forward")).ID)
	switch r.fate {
	case "handled":
		r.fate = "sent"
	case "dead after 1":
		r.fate = "refused"
	}
	return r
}

// takeOut removes m from the queue of the row.
func (c *inputs) takeOut(m saga.Message) string {
	c.t.Helper()
	body, err := saga.JSON.Encode(m)
	if err != nil {
		c.t.Fatal(err)
	}
	var got []byte
	err = c.pool.QueryRow(c.t.Context(), c.sql(`DELETE FROM `+c.queue(c.name)+` RETURNING body`)).Scan(&got)
	switch {
	case err != nil:
		return "sent, and not in the queue"
	case !bytes.Equal(got, body):
		return "altered"
	}
	return "stored"
}

// became waits until a message has its fate, and returns it.
func (c *inputs) became(endpoint string, id saga.ID) (r result) {
	c.t.Helper()
	c.until("a message is decided", func() bool {
		for _, e := range eventsOf[event.Event](c.world) {
			switch e := e.(type) {
			case event.Handled:
				if e.Info.ID == id {
					r = result{fate: "handled"}
				}
			case event.Discarded:
				if e.Info.ID == id {
					r = result{fate: "discarded", text: e.Reason}
				}
			case event.Retried:
				if e.Info.ID == id && e.Delay > time.Second/2 {
					r = result{fate: "parked", err: e.Err, text: e.Err.Error()}
				}
			case event.DeadLettered:
				if e.Info.ID == id {
					r = result{err: e.Err}
				}
			}
		}
		return r != result{}
	})
	if r.err != nil && r.fate == "" {
		r.fate = fmt.Sprintf("dead after %d",
			c.count(`SELECT attempts FROM edda.dead_letter WHERE message_id = $1 AND endpoint = $2`, [16]byte(id),
				endpoint))
		r.text = c.text(`SELECT error FROM edda.dead_letter WHERE message_id = $1 AND endpoint = $2`, [16]byte(id),
			endpoint)
	}
	return r
}

// letter is a message as it is stored in a queue.
type letter struct {
	kind, header, body string
	conflict           int
}

func (c *inputs) put(endpoint string, l letter) saga.ID {
	c.t.Helper()
	id := newID(c.t)
	if l.header == "" {
		l.header = "{}"
	}
	c.exec(`INSERT INTO `+c.queue(endpoint)+` (due, id, kind, header, body, conflict) VALUES (clock_timestamp(), `+
		`$1, $2, $3, $4, $5)`,
		[16]byte(id), l.kind, []byte(l.header), []byte(l.body), l.conflict)
	return id
}

// arrive gives l to part between two good messages of goodKind, in one batch. It requires that the good messages are
// handled, and that a dead letter holds the bytes that arrived.
func (c *inputs) arrive(way string, part bus.Part, goodKind string, l letter) result {
	c.t.Helper()
	name := c.name + "." + way
	o := bus.EndpointOptions{Concurrency: 1, Poll: 20 * time.Millisecond, UnknownKindTimeout: time.Microsecond}
	e := c.endpoint(name, o, part)
	c.makeQueue(name)
	if err := e.Install(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if l.kind == "" {
		l.kind = goodKind
	}
	good := letter{kind: goodKind, body: `{"Key":"good","Text":"fine"}`}
	before, id, after := c.put(name, good), c.put(name, l), c.put(name, good)
	stop := c.run(e)
	for _, neighbour := range []saga.ID{before, after} {
		if r := c.became(name, neighbour); r.fate != "handled" {
			c.t.Errorf("%s: a neighbour was %s: %s", way, r.fate, r.text)
		}
	}
	r := c.became(name, id)
	stop()
	r.way = way
	where := ""
	if r.fate == "parked" {
		where = c.queue(name) + ` WHERE id = $1 AND attempt = 0`
	} else if strings.HasPrefix(r.fate, "dead") {
		where = `edda.dead_letter WHERE message_id = $1`
	}
	if where != "" && c.count(`SELECT count(*) FROM `+where+` AND body = $2 AND header = $3`, [16]byte(id),
		[]byte(l.body), []byte(cmp.Or(l.header, "{}"))) != 1 {
		r.fate += ", altered"
	}
	return r
}

// both lets a message arrive at a plain handler and at a saga.
func (c *inputs) both(l letter) []result {
	c.t.Helper()
	plain := bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil })
	return []result{
		c.arrive("handler", plain, note{}.Kind(), l),
		c.arrive("saga", bus.Saga(c.jars()), opening{}.Kind(), l),
	}
}

// jars is a saga under the name of the row. It adds the values of each message to the state.
func (c *inputs) jars() *saga.Definition { return c.jarsIn(saga.Pessimistic) }

func (c *inputs) jarsIn(store saga.Store) *saga.Definition {
	return saga.Define(c.name, saga.Options{Store: store}, saga.StartedBy(func(m opening) string { return m.Key },
		func(s *jar, _ *saga.Context, m opening) error {
			s.Text += m.Text
			s.Sum += m.N
			s.F = m.F
			if m.N < 0 { // half of a character
				s.Text = s.Text[:len(s.Text)-1]
			}
			return nil
		}))
}
