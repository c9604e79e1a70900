package bus_test

import (
	"math"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// Inputs that handlers make, or that come from states.
var instanceInputs = []badInput{
	{"B3", "a state that is not UTF-8", (*inputs).brokenState,
		dead(saga.ErrInvalidText, "encode state of saga", "/bad")},
	{"B9", "a step that sends a good message and one that is too large", (*inputs).goodAndLarge,
		refused(saga.ErrTooLarge, "1048577 bytes", "limit 1048576")},
	{"B10", "a step that sends 65 MiB", (*inputs).largeStep,
		refused(saga.ErrTooLarge, "67108864 bytes of messages in one step")},
	{"B10", "a batch of large steps", (*inputs).largeBatch, fate("split")},
	{"B23", "a message for no instance", missing(letter{}), fate("discarded", "no instance")},
	{"B23", "the same where that is a failure", missing(letter{}, saga.IfMissing(saga.MissingDeadLetter)),
		want{"dead after 0", bus.ErrMissing, []string{`key "gone"`}}},
	{"B24", "an answer for an instance that has ended",
		missing(letter{header: `{"edda-instance":"0190b5a0-7b7c-7cc2-8d5e-0123456789ab"}`}),
		fate("discarded", "no instance")},
	{"B24", "a timeout of an instance that has ended",
		missing(letter{kind: "input.blank", header: `{"edda-intent":"timeout",` +
			`"edda-instance":"0190b5a0-7b7c-7cc2-8d5e-0123456789ab"}`}), fate("discarded", "no instance")},
	{"B25", "a state that became an array", edited(`state = '[1,2]'`), dead(saga.ErrState, "/bad")},
	{"B25", "a state that became a text", edited(`state = '"s3cr3t"'`), dead(saga.ErrState, "/bad")},
	{"B25", "a state that became null", edited(`state = ' null '`), dead(saga.ErrState, "/bad", "null")},
	{"B25", "a state that became a number", edited(`state = '7'`), dead(saga.ErrState, "/bad")},
	{"B25", "a state nested 1,001 deep", edited(`state = (repeat('[', 1001) || repeat(']', 1001))::json`),
		dead(saga.ErrState, "nested deeper than 1000")},
	{"B25", "timeouts that are none", edited(`timeouts = '{}'`), dead(nil, "column timeouts", "/bad")},
	{"B25", "an originator that is none", edited(`originator = '7'`), dead(nil, "column originator", "/bad")},
	{"B26", "a step that makes the state too large", (*inputs).grownState,
		dead(saga.ErrTooLarge, "state of saga", "/bad", "limit 1048576")},
	{"B27", "a field that was a text and is a number", edited(`state = '{"Sum":"s3cr3t"}'`),
		dead(saga.ErrState, "Sum", "string")},
	{"B27", "a field that was a fraction and is an integer", edited(`state = '{"Sum":4111222233334444.5}'`),
		dead(saga.ErrState, "Sum", "number")},
	{"B27", "a state of a newer program", edited(`state_version = 2, state = '{"Sum":"other"}'`),
		fate("parked", "newer program", "version 2")},
	{"B27", "a saga that was renamed", (*inputs).renamed, fate("handled")},
	{"B38", "2,147,483,647 attempts and one more", (*inputs).manyAttempts, fate("2147483647 attempts")},
	{"B38", "a policy that waits for 300 years", (*inputs).longPolicy, fate("10 years")},
	{"B38", "a policy that waits for less than nothing", (*inputs).shortPolicy, fate("handled")},
}

// bad stores an instance under the key bad. Its message arrives between two messages for a different instance.
func (c *inputs) bad(state, set string, body string) (results []result) {
	c.t.Helper()
	for way, store := range map[string]saga.Store{"pessimistic": saga.Pessimistic, "optimistic": saga.Optimistic} {
		c.exec(`DELETE FROM edda.saga WHERE saga = $1`, c.name)
		c.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state) VALUES (gen_random_uuid(), $1,
			'bad', 1, 1, $2)`, c.name, state)
		if set != "" {
			c.exec(`UPDATE edda.saga SET `+set+` WHERE saga = $1`, c.name)
		}
		row := func() string {
			return c.text(`SELECT md5(s::text) FROM edda.saga s WHERE s.saga = $1 AND s.key = 'bad'`, c.name)
		}
		before := row()
		r := c.arrive(way, bus.Saga(c.jarsIn(store)), opening{}.Kind(), letter{body: body})
		if row() != before {
			r.fate += ", and the instance has changed"
		}
		results = append(results, r)
	}
	return results
}

// edited is an instance whose row an operator has changed by hand.
func edited(set string) func(*inputs) []result {
	return func(c *inputs) []result { return c.bad(`{"Sum":1}`, set, `{"Key":"bad","N":1}`) }
}

func (c *inputs) grownState() []result {
	return c.bad(`{"Text":"`+text(600_000)+`","Sum":1}`, "", `{"Key":"bad","Text":"`+text(600_000)+`"}`)
}

func (c *inputs) brokenState() []result {
	return c.bad(`{"Text":"caf","Sum":1}`, "", `{"Key":"bad","Text":"é","N":-1}`)
}

func (c *inputs) renamed() []result {
	old := c.name + "-old"
	c.exec(`INSERT INTO edda.saga (iid, saga, key, version, state_version, state) VALUES (gen_random_uuid(), $1, 'k',
		1, 1, '{"Sum":7}')`, old)
	results := c.toSaga(letter{body: `{"Key":"k","N":1}`})
	c.want(1, `SELECT count(*) FROM edda.saga WHERE saga = $1 AND version = 1 AND state::text = '{"Sum":7}'`, old)
	return results
}

// missing lets l arrive, by default a message for the key gone, when no attempt is left.
func missing(l letter, o ...saga.HandleOption) func(*inputs) []result {
	return func(c *inputs) []result {
		def := saga.Define(c.name, saga.Options{},
			saga.StartedBy(func(m opening) string { return m.Key },
				func(*jar, *saga.Context, opening) error { return nil }),
			saga.Handles(func(m note) string { return m.Key }, func(*jar, *saga.Context, note) error { return nil },
				o...),
			saga.OnTimeout(func(*jar, *saga.Context, blank) error { return nil }))
		l.conflict, l.body = 3, `{"Key":"gone"}`
		if l.kind == "" {
			l.kind = note{}.Kind()
		}
		return []result{c.arrive("saga", bus.Saga(def), opening{}.Kind(), l)}
	}
}

// inSteps runs f in a step of a handler and of a saga.
func (c *inputs) inSteps(f func(give)) (results []result) {
	c.t.Helper()
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	n := c.steps.add(f)
	for _, m := range []saga.Message{relayed{n}, sagaRelayed{n}} {
		r := c.became("forward", c.send(m, saga.To("forward")).ID)
		r.way = m.Kind()
		if r.fate == "dead after 1" {
			r.fate = "refused"
		}
		results = append(results, r)
	}
	c.want(0, `SELECT count(*) FROM `+c.queue(c.name))
	return results
}

func (c *inputs) goodAndLarge() []result {
	return c.inSteps(func(g give) {
		g(note{}, saga.To(c.name))
		g(raw(secret+text(mebibyte-5)), saga.To(c.name))
	})
}

func (c *inputs) largeStep() []result {
	body := text(mebibyte)
	return c.inSteps(func(g give) {
		for range 65 {
			g(raw(body), saga.To(c.name))
		}
	})
}

// largeBatch: three steps of 7 MiB each are written before the fourth begins.
func (c *inputs) largeBatch() []result {
	c.install(c.name, bus.HandleTx(func(*bus.Context, pgx.Tx, note) error { return nil }))
	body := text(mebibyte)
	part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ relayed) error {
		for range 7 {
			ctx.Send(raw(body), saga.To(c.name))
		}
		return nil
	})
	from := c.name + ".from"
	c.install(from, part)
	for range 4 {
		c.send(relayed{}, saga.To(from))
	}
	c.start(from, bus.EndpointOptions{Concurrency: 1, BatchTime: 5 * time.Second}, part)
	c.untilEmpty(from)
	c.want(28, `SELECT count(*) FROM `+c.queue(c.name)+` WHERE octet_length(body) = 1048576`)
	c.exec(`TRUNCATE ` + c.queue(c.name))
	r := result{fate: "split"}
	for _, e := range eventsOf[event.BatchDone](c.world) {
		if e.Endpoint == from && e.Handled > 3 {
			r.fate = "in one batch"
		}
	}
	return []result{r}
}

// failing returns the fate of l at an endpoint that fails always, or once, under a policy.
func (c *inputs) failing(policy recoverability.Policy, l letter, change string) string {
	part := bus.HandleTx(func(ctx *bus.Context, _ pgx.Tx, _ note) error {
		if ctx.Info().Attempt == 2 {
			return nil
		}
		return errNo
	})
	c.install(c.name, part)
	id := c.put(c.name, l)
	if change != "" {
		c.exec(`UPDATE ` + c.queue(c.name) + ` SET ` + change)
	}
	c.start(c.name, bus.EndpointOptions{Concurrency: 1, Poll: 10 * time.Millisecond, Policy: policy}, part)
	c.until("it was tried", func() bool {
		for _, e := range eventsOf[event.Handled](c.world) {
			if e.Info.ID == id {
				return true
			}
		}
		return c.count(`SELECT count(*) FROM `+c.queue(c.name)+` WHERE due > now() + interval '1 minute'`) == 1
	})
	return c.queue(c.name)
}

func waits(d time.Duration) recoverability.Policy {
	return func(recoverability.Failure) recoverability.Decision { return recoverability.RetryIn(d) }
}

func (c *inputs) manyAttempts() []result {
	queue := c.failing(waits(time.Hour), letter{kind: "input.note", body: "{}"}, `attempt = 2147483647`)
	return []result{{fate: c.text(`SELECT attempt || ' attempts' FROM ` + queue)}}
}

func (c *inputs) longPolicy() []result {
	queue := c.failing(waits(math.MaxInt64), letter{kind: "input.note", body: "{}"}, "")
	return []result{{fate: c.text(`SELECT CASE WHEN due BETWEEN now() + interval '3649 days'
		AND now() + interval '3651 days' THEN '10 years' ELSE due::text END FROM ` + queue)}}
}

func (c *inputs) shortPolicy() []result {
	queue := c.failing(waits(-time.Hour), letter{kind: "input.note", body: "{}"}, "")
	return []result{{fate: c.text(`SELECT CASE WHEN count(*) = 0 THEN 'handled' ELSE 'waits' END FROM ` + queue)}}
}
