package operate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/event"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/test/pgtest"
)

// Endpoints that no process runs, messages without a consumer, and kinds that an endpoint does not handle are faults;
// handled messages and running endpoints are not.
func TestFaults(t *testing.T) {
	r, _, schema := newReader(t)
	owner := pgtest.Pool(t) // installs endpoints
	dead := make(chan struct{}, 2)
	b, err := bus.New(owner, bus.Options{Schema: schema.Name(), AutoInstall: true,
		History: history.Options{Level: history.Steps}, Events: func(e event.Event) {
			if _, ok := e.(event.DeadLettered); ok {
				dead <- struct{}{}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	charges := make(chan struct{}, 1)
	group := run.NewGroup(t.Context())
	start := func(name string, runs bool, parts ...bus.Part) {
		t.Helper()
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{Poll: 20 * time.Millisecond,
			UnknownKindTimeout: time.Microsecond}, parts...)
		if err == nil {
			err = e.Install(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if runs {
			group.Go(e.Run)
		}
	}
	start("orders", true, bus.Saga(orders))
	start("payments", true, bus.Handle(func(ctx *bus.Context, m charge) error {
		ctx.Publish(paid(m))
		charges <- struct{}{}
		return nil
	}))
	start("mails", false, bus.Handle(func(*bus.Context, late) error { return nil }))
	if _, err := b.Send(t.Context(), place{Order: "7"}); err != nil {
		t.Fatal(err)
	}
	<-charges
	for range 2 {
		pgtest.Exec(t, owner, schema.Render("SELECT :schema.send('payment.strange', '{}', endpoint => 'payments')"))
		<-dead
	}
	check := func(want string) {
		t.Helper()
		m, err := r.Map(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range m.Faults {
			got += fmt.Sprintf("%s/%s %s\n", f.Endpoint, f.Kind, f.Says)
		}
		if got != want {
			t.Errorf("the faults are\n%swant\n%s", got, want)
		}
	}
	const lost = "payments/order.paid It publishes order.paid, which has no subscriber.\n" +
		"payments/payment.strange It does not handle payment.strange: 2 messages of that kind died here.\n"
	pgtest.Exec(t, owner, schema.Render(`INSERT INTO :schema.dead_letter (endpoint, message_id, kind, header, body,
		attempts, conflicts, reason, error) VALUES ('orders', gen_random_uuid(), 'order.place', '{}', '{}', 9, 0,
		'permanent', 'x')`)) // a failure of its handler
	check("mails/ No process runs it.\n" + lost)
	group.Stop() // after the current batches, so that the history has them
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, owner, schema.Render("DELETE FROM :schema.endpoint_setting"))
	pgtest.Exec(t, owner, schema.Render("UPDATE :schema.queue SET endpoint = 'wallets' WHERE endpoint = 'payments'"))
	pgtest.Exec(t, owner, schema.Render("DELETE FROM :schema.dead_letter"))
	pgtest.Exec(t, owner, schema.Render("DELETE FROM :schema.subscription WHERE kind = 'payment.charge'"))
	check("mails/ No process runs it.\norders/ No process runs it.\norders/payment.charge Its saga order has sent " +
		"payment.charge, which no endpoint consumes any more.\nwallets/ No process runs it.\n")
}
