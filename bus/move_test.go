package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/outbox"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bill is sent to the saga that moves, which settles it some time later; settled is its answer.
type (
	bill    struct{ Order string }
	settled struct{ Order string }
	settle  struct{}
)

func (bill) Kind() string    { return "move.bill" }
func (settled) Kind() string { return "move.settled" }
func (settle) Kind() string  { return "move.settle" }

// movedOrder is an instance that stays, and counts the answers that it gets.
type movedOrder struct{ Paid int }

type payment struct{ Order string }

func stayingSaga() *saga.Definition {
	return saga.Define("move.order", saga.Options{},
		saga.StartedBy(func(m place) string { return m.Order }, func(_ *movedOrder, ctx *saga.Context, m place) error {
			ctx.Send(bill{Order: m.Order})
			return nil
		}),
		saga.OnReply(func(s *movedOrder, _ *saga.Context, _ settled) error { s.Paid++; return nil }))
}

func movingSaga() *saga.Definition {
	return saga.Define("payment", saga.Options{},
		saga.StartedBy(func(m bill) string { return m.Order }, func(s *payment, ctx *saga.Context, m bill) error {
			s.Order = m.Order
			n, _ := strconv.Atoi(m.Order)
			ctx.Timeout(time.Duration(n%40)*100*time.Millisecond, settle{})
			return nil
		}),
		saga.OnTimeout(func(s *payment, ctx *saga.Context, _ settle) error {
			ctx.ReplyToOriginator(settled(*s))
			ctx.Complete()
			return nil
		}))
}

// across ingests the messages of a relay into the queue of the same name in a second database, without a broker.
func across(from string, to *bus.Bus, endpoint string) outbox.Forward {
	return func(ctx context.Context, messages []*saga.Delivery) []error {
		errs := make([]error, len(messages))
		arrivals := make([]outbox.IngestMessage, len(messages))
		for n, d := range messages {
			arrivals[n] = outbox.IngestMessage{ID: d.Info.ID.String(), Kind: d.Info.Kind,
				Header: outbox.Envelope(&d.Info),
				Body:   d.Body}
		}
		if _, err := to.Ingest(ctx, outbox.IngestOptions{From: from, Endpoint: endpoint}, arrivals...); err != nil {
			for n := range errs {
				errs[n] = outbox.ErrBehind
			}
			errs[0] = err
		}
		return errs
	}
}

// An endpoint moves to a second database with its instances and timeouts, by the steps and the SQL of
// docs/operate/scaling.md, while messages for it are sent: every order is paid once, wherever its payment began.
func TestEndpointMovesToAnotherDatabase(t *testing.T) {
	a := newWorld(t, bus.Options{})
	pool := a.anotherDatabase("moved", a.schema)
	b := &world{t: t, owner: pool, pool: pool, schema: a.schema}
	b.bus = b.newBus(bus.Options{Schema: b.schema})
	page := scalingPage(t)

	a.start("orders", bus.EndpointOptions{}, bus.Saga(stayingSaga()))
	stopOld := a.start("payments", bus.EndpointOptions{Poll: 50 * time.Millisecond}, bus.Saga(movingSaga()))
	const orders = 300
	send := func(from, to int) {
		for n := from; n < to; n++ {
			a.send(place{Order: strconv.Itoa(n)})
		}
	}
	send(0, orders/3)

	// 1: the way back
	payments := b.install("payments", bus.Saga(movingSaga()))
	back := newRelayOf(b, "orders", across("b", a.bus, "orders"), settled{}.Kind())
	b.runRelay(back)
	// The timeouts must still be waiting at the stop, even if the test has been slow so far.
	send(orders/3, orders/2)
	a.until("there are timeouts with time left", func() bool {
		return a.count(`SELECT count(*) FROM `+a.queue("payments")+` WHERE due > now() + interval '2500 ms'`) > 0
	})
	// 2: stop
	if err := a.operator().Endpoints().Pause(t.Context(), "payments", "moves"); err != nil {
		t.Fatal(err)
	}
	stopOld()
	send(orders/2, 2*orders/3)
	// 3: copy
	page.copy(t, a, b)
	if n := b.count(`SELECT count(*) FROM edda.saga`); n == 0 ||
		n != b.count(`SELECT count(*) FROM `+b.queue("payments")) {
		t.Errorf("%d instances and %d timeouts moved, want as many and some: the test shows nothing otherwise", n,
			b.count(`SELECT count(*) FROM `+b.queue("payments")))
	}
	// 4: the point of no return
	a.exec(`INSERT INTO edda.parked (queue, key, due, id, sent, attempt, conflict, kind, header, body) SELECT id, 'k',
		now(), gen_random_uuid(), now(), 0, 0, 'parked', '{}', '{}' FROM edda.queue WHERE endpoint = 'payments'`)
	a.exec(page.numbered(page.step4, a, b))
	a.want(1, `SELECT count(*) FROM `+a.queue("payments")+` WHERE kind = 'parked'`)
	a.exec(`DELETE FROM ` + a.queue("payments") + ` WHERE kind = 'parked'`)
	if err := a.endpoint("payments", bus.EndpointOptions{}, bus.Saga(movingSaga())).Check(t.Context()); err == nil {
		t.Error("an old program may run the endpoint in A again")
	}
	// 5: start
	b.run(payments)
	a.runRelay(newRelayOf(a, "payments", across("a", b.bus, "payments"), bill{}.Kind()))
	if err := a.operator().Endpoints().Resume(t.Context(), "payments"); err != nil {
		t.Fatal(err)
	}
	send(2*orders/3, orders)

	a.untilWithin(pgdev.Patience(time.Minute), "every order is paid", func() bool {
		return a.count(`SELECT count(*) FROM edda.saga WHERE (state ->> 'Paid')::int > 0`) == orders
	})
	a.want(orders, `SELECT count(*) FROM edda.saga WHERE saga = 'move.order' AND (state ->> 'Paid')::int = 1`)
	for _, w := range []*world{a, b} {
		w.want(0, `SELECT (SELECT count(*) FROM edda.dead_letter) + (SELECT count(*)
			FROM edda.discarded) + (SELECT count(*) FROM edda.saga WHERE saga = 'payment')`)
		w.untilEmpty("payments")
	}
}

func newRelayOf(w *world, name string, f outbox.Forward, kinds ...string) *outbox.Relay {
	w.t.Helper()
	owner, err := bus.New(w.owner, bus.Options{Schema: w.schema})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, each := range []*bus.Bus{owner, w.bus} {
		r, err := bus.NewRelay(each, name, soonRelayed(), f, kinds...)
		if err != nil {
			w.t.Fatal(err)
		}
		if each == w.bus {
			return r
		}
		if err := r.Install(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return nil
}

// movePage has the commands of docs/operate/scaling.md.
type movePage struct {
	out, in []string
	step4   string
}

var (
	copyLine  = regexp.MustCompile(`(?ms)^psql "\$[AB]" -c "(COPY .*?(?:TO STDOUT|FROM STDIN))"`)
	step4Text = regexp.MustCompile("(?s)```sql\n-- step 4\n(.*?)```")
)

func scalingPage(t *testing.T) movePage {
	t.Helper()
	text, err := os.ReadFile("../docs/operate/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	var p movePage
	for _, m := range copyLine.FindAllSubmatch(text, -1) {
		statement := strings.ReplaceAll(string(m[1]), `\"`, `"`)
		if strings.HasSuffix(statement, "TO STDOUT") {
			p.out = append(p.out, statement)
		} else {
			p.in = append(p.in, statement)
		}
	}
	step4 := step4Text.FindSubmatch(text)
	if len(p.out) != 2 || len(p.in) != 2 || step4 == nil {
		t.Fatalf("docs/operate/scaling.md: %d copies from, %d copies to, step 4: %t", len(p.out), len(p.in),
			step4 != nil)
	}
	p.step4 = string(step4[1])
	return p
}

func (p movePage) numbered(statement string, a, b *world) string {
	number := func(w *world) string { return strings.TrimPrefix(w.queue("payments"), "edda.queue_") }
	return strings.NewReplacer("$NA", number(a), "$NB", number(b)).Replace(statement)
}

func (p movePage) copy(t *testing.T, a, b *world) {
	t.Helper()
	for n := range p.out {
		var rows bytes.Buffer
		withConn(t, a.owner, func(conn *pgx.Conn) error {
			_, err := conn.PgConn().CopyTo(t.Context(), &rows, a.sql(p.numbered(p.out[n], a, b)))
			return err
		})
		withConn(t, b.owner, func(conn *pgx.Conn) error {
			_, err := conn.PgConn().CopyFrom(t.Context(), &rows, b.sql(p.numbered(p.in[n], a, b)))
			return err
		})
	}
}

func withConn(t *testing.T, pool *pgxpool.Pool, do func(*pgx.Conn) error) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err == nil {
		defer conn.Release()
		err = do(conn.Conn())
	}
	if err != nil {
		t.Fatal(fmt.Errorf("copy: %w", err))
	}
}
