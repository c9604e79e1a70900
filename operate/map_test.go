package operate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	hours   = 24
	minutes = 60
)

func newReader(t *testing.T) (operate.Endpoints, *pgxpool.Pool, pg.Schema) {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	o, err := operate.New(pool, operate.Options{Schema: schema.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return o.Endpoints(), pool, schema
}

// Handled messages are counted by the hour, and the rate is that of the last two hours.
func TestPace(t *testing.T) {
	r, pool, schema := newReader(t)
	counted := func(endpoint, saga string, hoursAgo, steps, starts int) {
		t.Helper()
		_, err := pool.Exec(t.Context(), schema.Render(`INSERT INTO :schema.saga_counter
			SELECT h, $1, $2, '', 1, 1, greatest(h, now() - interval '90 minutes'), now(), 0, $4, 0, 0, 0, 0, 0, 0, 0,
				0, 0, 0, $5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
			FROM (SELECT date_trunc('hour', now(), 'UTC') - $3::int * interval '1 hour') x(h)`), endpoint, saga,
			hoursAgo, steps, starts)
		if err != nil {
			t.Fatal(err)
		}
	}
	counted("stock", "", 3, 7, 0)
	counted("orders", "order", 0, 60, 6)
	counted("orders", "order", 1, 120, 9)
	counted("orders", "order", 22, 5, 1)
	counted("orders", "order", 24, 1000, 1000) // more than a day ago
	all, err := r.SagaPace(t.Context())
	if err != nil || len(all) != 2 || all[0].Endpoint != "orders" || all[1].Endpoint != "stock" {
		t.Fatalf("%+v, %v", all, err)
	}
	orders, last, want := all[0], hours-1, operate.Pace{}
	want.Handled[last], want.Handled[last-1], want.Handled[1] = 60, 120, 5
	want.Started[last], want.Started[last-1], want.Started[1] = 6, 9, 1
	if orders.Handled != want.Handled || orders.Started != want.Started {
		t.Errorf("handled %v, started %v", orders.Handled, orders.Started)
	}
	if n := orders.PerMinute * orders.Over.Minutes(); orders.Over < time.Hour || orders.Over > 2*time.Hour ||
		n < 179 || n > 181 {
		t.Errorf("%v a minute over %v, want 180 messages over the time in which they were counted",
			orders.PerMinute, orders.Over)
	}
	if stock := all[1]; stock.PerMinute != 0 || stock.Handled[last-3] != 7 {
		t.Errorf("what was quiet for two hours has the pace %+v", stock)
	}
}

// The minutes are the last sixty, wherever the hour began, and messages of older programs are counted as Untold.
func TestPaceByTheMinute(t *testing.T) {
	r, pool, schema := newReader(t)
	minute := func() (now time.Time) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), "SELECT date_trunc('minute', now())").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return now.UTC()
	}
	for _, name := range []string{"orders", "stock", "idle"} {
		if _, err := pgtest.Pool(t).Exec(t.Context(), schema.Render("SELECT :schema.create_queue($1)"),
			name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pgtest.Pool(t).Exec(t.Context(), schema.Render(
		"INSERT INTO :schema.settings (name, value) VALUES ('relay/stock', 'yes')")); err != nil {
		t.Fatal(err)
	}
	var all, sums []operate.Pace
	for now := minute(); all == nil || !now.Equal(minute()); now = minute() { // a new minute may begin during the test
		var ofSagas, ofEndpoints error
		countByTheMinute(t, pool, schema, now)
		all, ofSagas = r.SagaPace(t.Context())
		sums, ofEndpoints = r.Pace(t.Context())
		if err := errors.Join(ofSagas, ofEndpoints); err != nil {
			t.Fatal(err)
		}
	}
	want := operate.Recent{Untold: 2 * 7} // in two hours
	for n := range minutes {
		ago := int64(minutes - 1 - n)
		want.Handled[n], want.Retried[n], want.Dead[n] = 100+ago, 200+ago, 300+ago
	}
	if len(all) != 3 || all[0].Recent != want || all[1].Recent != want {
		t.Fatalf("%+v\nwant %+v", all, want)
	}
	if old := all[2].Recent; old.Known() || old.Untold != 9 || !want.Known() {
		t.Errorf("what only an older program counted is %+v", old)
	}
	if len(sums) != 2 || sums[0] != (operate.Pace{Endpoint: "idle"}) || sums[1].Endpoint != "orders" {
		t.Fatalf("%+v", sums)
	}
	if both := sums[1]; both.Recent.Handled[59] != 200 || both.Recent.Retried[0] != 518 ||
		both.Recent.Dead[59] != 600 || both.Recent.Untold != 28 || both.Saga != "" ||
		both.Handled[hours-1] != 2*all[0].Handled[hours-1] || both.PerMinute < all[0].PerMinute {
		t.Errorf("together %+v", both)
	}
	if !(&operate.Recent{}).Known() {
		t.Error("that nothing was handled is not known")
	}
}

// countByTheMinute counts the messages of two sagas in the last ninety minutes, with seven messages an hour that an
// older program has counted, and an endpoint that only an older program runs.
func countByTheMinute(t *testing.T, pool *pgxpool.Pool, schema pg.Schema, now time.Time) {
	t.Helper()
	type of struct{ steps, retries, dead [minutes]int }
	hours := map[time.Time]*of{}
	for ago := range 90 {
		at := now.Add(-time.Duration(ago) * time.Minute)
		h := hours[at.Truncate(time.Hour)]
		if h == nil {
			h = &of{}
			hours[at.Truncate(time.Hour)] = h
		}
		m := at.Minute()
		h.steps[m], h.retries[m], h.dead[m] = 100+ago, 200+ago, 300+ago
	}
	stored := func(minutes [minutes]int) string {
		return "[0:59]={" + strings.ReplaceAll(strings.Trim(fmt.Sprint(minutes), "[]"), " ", ",") + "}"
	}
	add := func(hour time.Time, endpoint, saga string, steps int, minutes ...any) {
		t.Helper()
		_, err := pool.Exec(t.Context(), schema.Render(`INSERT INTO :schema.saga_counter
			SELECT $1, $2, $3, '', 1, 1, $1, $1, 0, $4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
				0, 0, 0,
				$5::text::int[], $6::text::int[], $7::text::int[]`),
			append([]any{hour, endpoint, saga, steps}, minutes...)...)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(t.Context(), schema.Render("DELETE FROM :schema.saga_counter")); err != nil {
		t.Fatal(err)
	}
	for hour, h := range hours {
		steps := 7
		for _, n := range h.steps {
			steps += n
		}
		for _, saga := range []string{"order", "parcel"} {
			add(hour, "orders", saga, steps, stored(h.steps), stored(h.retries), stored(h.dead))
		}
	}
	add(now.Truncate(time.Hour), "stock", "", 9, nil, nil, nil)
}

type (
	place   struct{ Order string }
	charge  struct{ Order string }
	charged struct{ Order string }
	paid    struct{ Order string }
	late    struct{}
	order   struct{}
)

func (place) Kind() string   { return "order.place" }
func (charge) Kind() string  { return "payment.charge" }
func (charged) Kind() string { return "payment.charged" }
func (paid) Kind() string    { return "order.paid" }
func (late) Kind() string    { return "order.late" }

var orders = saga.Define("order", saga.Options{},
	saga.StartedBy(func(m place) string { return m.Order }, func(_ *order, ctx *saga.Context, m place) error {
		ctx.Send(charge(m))
		ctx.Timeout(time.Hour, late{})
		return nil
	}),
	saga.OnReply(func(_ *order, ctx *saga.Context, m charged) error {
		ctx.Publish(paid(m))
		ctx.Complete()
		return nil
	}),
	saga.OnTimeout(func(*order, *saga.Context, late) error { return nil }),
)

// told returns a map as text, a line for each edge.
func told(m *operate.Map) string {
	var lines strings.Builder
	for _, e := range m.Edges {
		event := ""
		if e.Event {
			event = " (event)"
		}
		fmt.Fprintf(&lines, "%s/%s -%s%s-> %s %d\n", e.From, e.Saga, e.Kind, event, e.To, e.Seen)
	}
	return lines.String()
}

// An edge is a kind that a saga or a handler sends according to the history; without a history it has no sender.
func TestMap(t *testing.T) {
	r, _, schema := newReader(t)
	owner := pgtest.Pool(t) // installs endpoints
	before, err := r.Map(t.Context())
	if err != nil || len(before.Endpoints)+len(before.Edges) != 0 || !before.Since.IsZero() {
		t.Errorf("of an empty schema: %+v, %v", before, err)
	}
	b, err := bus.New(owner, bus.Options{Schema: schema.Name(), AutoInstall: true,
		History: history.Options{Level: history.Steps}})
	if err != nil {
		t.Fatal(err)
	}
	group := run.NewGroup(t.Context())
	start := func(name string, parts ...bus.Part) {
		t.Helper()
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{}, parts...)
		if err == nil {
			err = e.Install(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		group.Go(e.Run)
	}
	start("orders", bus.Saga(orders))
	start("payments", bus.Handle(func(ctx *bus.Context, m charge) error { ctx.Reply(charged(m)); return nil }))
	ended := make(chan struct{}, 10)
	heard := bus.Handle(func(*bus.Context, paid) error { ended <- struct{}{}; return nil })
	start("mails", heard)
	start("reports", heard)
	for n := range 2 {
		if _, err := b.Send(t.Context(), place{Order: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		<-ended
	}
	group.Stop() // after the current batches
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), schema.Render(`INSERT INTO :schema.subscription (kind, queue)
		SELECT 'order.late', id FROM :schema.queue WHERE endpoint = 'reports'`)); err != nil {
		t.Fatal(err)
	}
	m, err := r.Map(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := `/ -order.late-> reports 0
/ -order.place-> orders 2
orders/order -order.paid (event)-> mails 2
orders/order -order.paid (event)-> reports 2
orders/order -payment.charge-> payments 2
payments/ -payment.charged-> orders 2
`; told(&m) != want {
		t.Errorf("the map is\n%swant\n%s", told(&m), want)
	}
	if e := m.Endpoints; len(e) != 4 || e[1].Name != "orders" || fmt.Sprint(e[1].Sagas) != "[order]" ||
		fmt.Sprint(e[3].Kinds) != "[order.late order.paid]" {
		t.Errorf("the endpoints are %+v", e)
	}
	if rate := m.Edges[1].PerMinute; m.Since.IsZero() || rate <= 0 || rate > 2 {
		t.Errorf("since %v, %v a minute", m.Since, rate)
	}
}

// However large the transactions are, Map reads at most 1 MiB of them, and skips a transaction above 256 KiB.
func TestMapIsBounded(t *testing.T) {
	r, _, schema := newReader(t)
	owner := pgtest.Pool(t)
	b, err := bus.New(owner, bus.Options{Schema: schema.Name(), AutoInstall: true,
		History: history.Options{Level: history.Bodies}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 2)
	e, err := bus.NewEndpoint(b, "mails", bus.EndpointOptions{Concurrency: 1},
		bus.Handle(func(*bus.Context, paid) error { ended <- struct{}{}; return nil }))
	if err == nil {
		err = e.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // they are one batch, of 30 KiB
		if _, err := b.Send(t.Context(), paid{Order: strings.Repeat("x", 15<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	group := run.NewGroup(t.Context())
	group.Go(e.Run)
	for range 2 {
		<-ended
	}
	group.Stop()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`INSERT INTO :schema.history (slot, id, endpoint, messages, page)
			SELECT slot, ('ffffffff-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, endpoint, messages, page
			FROM :schema.history, generate_series(1, 1000) n`,
		`INSERT INTO :schema.history (slot, id, endpoint, messages, page) SELECT r.slot,
			'ffffffff-ffff-7000-8000-000000000000', 'x', 1, decode(repeat('01', 300000), 'hex')
			FROM :schema.ring r WHERE r.name = 'history'`,
	} {
		if _, err := owner.Exec(t.Context(), schema.Render(sql)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.Map(t.Context())
	if most := 2 * (1 << 20) / (30 << 10); err != nil || m.Messages < most/2 || m.Messages > most {
		t.Errorf("%d messages were read, %v, want %d at most", m.Messages, err, most)
	}
}
