package operate_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgdev"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5/pgxpool"
)

type (
	placing struct{ Order string }
	payment struct{ Cents int }
	paying  struct{ Paid int }
)

func (placing) Kind() string { return "order.place" }
func (payment) Kind() string { return "card.paid" }

// post is a schema with three endpoints: orders consumes order.place, mails and texts consume note.
type post struct {
	*testing.T
	pool   *pgxpool.Pool
	schema string
	op     *operate.Operator
}

func newPost(t *testing.T) *post {
	t.Helper()
	t.Parallel()
	pool, schema := pgtest.Database(t)
	p := &post{T: t, pool: pool, schema: schema.Name()}
	owner, err := operate.New(pgtest.Pool(t), operate.Options{Schema: p.schema})
	p.must(err)
	p.must(owner.Queues().Install(t.Context(), "orders", "order.place"))
	p.must(owner.Queues().Install(t.Context(), "mails", "note"))
	p.must(owner.Queues().Install(t.Context(), "texts", "note"))
	p.op, err = operate.New(pool, operate.Options{Schema: p.schema})
	p.must(err)
	return p
}

func (p *post) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *post) send(m operate.OutgoingMessage) (id saga.ID, duplicate bool) {
	p.Helper()
	id, duplicate, err := p.op.Messages().Send(p.Context(), m)
	p.must(err)
	return id, duplicate
}

func (p *post) entries() []operate.AuditEntry {
	p.Helper()
	all, err := p.op.Audit(p.Context(), operate.AuditFilter{})
	p.must(err)
	return all
}

func TestSend(t *testing.T) {
	p := newPost(t)
	sent, _ := p.send(operate.OutgoingMessage{Kind: "order.place", Body: []byte(`{"Order":"7"}`), Delay: time.Hour,
		Headers: map[string]string{"tenant": "acme"}, Reason: "it was lost"})
	found, err := p.op.Messages().Peek(t.Context(), "orders", operate.PeekOptions{})
	p.must(err)
	if len(found) != 1 || found[0].Info.ID != sent || string(found[0].Body) != `{"Order":"7"}` ||
		found[0].Info.Header("tenant") != "acme" || time.Until(found[0].Info.Due) < 50*time.Minute {
		t.Errorf("%+v", found)
	}
	all := p.entries()
	if len(all) != 1 || all[0].Verb != "message.send" || all[0].Target != sent.String() ||
		all[0].Reason != "it was lost" || strings.Contains(string(all[0].After), "Order") {
		t.Errorf("%+v", all)
	}
	id := saga.ID{0: 1, 15: 7}
	for n := range 2 {
		sent, duplicate := p.send(operate.OutgoingMessage{Kind: "note", To: "texts", Body: []byte(`1`), ID: id})
		if sent != id || duplicate != (n == 1) {
			t.Errorf("%v, duplicate %v", sent, duplicate)
		}
	}
	if all = p.entries(); len(all) != 2 {
		t.Errorf("%d entries, want one for each message that was written", len(all))
	}
	for want, m := range map[error]operate.OutgoingMessage{
		operate.ErrNoRoute:    {Kind: "none", Body: []byte(`1`)},
		operate.ErrAmbiguous:  {Kind: "note", Body: []byte(`1`)},
		operate.ErrConflict:   {Kind: "note", To: "texts", Body: []byte(`2`), ID: id},
		operate.ErrNoInstance: {Kind: "order.place", Body: []byte(`1`), Saga: "order", Key: "7"},
	} {
		if _, _, err := p.op.Messages().Send(t.Context(), m); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", m, err, want)
		}
	}
	own := operate.OutgoingMessage{Kind: "order.place", Body: []byte(`1`),
		Headers: map[string]string{"edda-from": "me"}}
	if _, _, err := p.op.Messages().Send(t.Context(), own); err == nil {
		t.Error("a header of the bus was set")
	}
}

// An answer that was lost can be sent to the instance that waits for it.
func TestSendToAnInstance(t *testing.T) {
	p := newPost(t)
	b, err := bus.New(p.pool, bus.Options{Schema: p.schema, Logger: slog.New(slog.DiscardHandler),
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	p.must(err)
	e, err := bus.NewEndpoint(b, "orders", bus.EndpointOptions{Poll: time.Hour}, bus.Saga(saga.Define("order",
		saga.Options{},
		saga.StartedBy(func(m placing) string { return m.Order },
			func(*paying, *saga.Context, placing) error { return nil }),
		saga.OnReply(func(s *paying, _ *saga.Context, m payment) error { s.Paid += m.Cents; return nil }))))
	p.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p.send(operate.OutgoingMessage{Kind: "order.place", Body: []byte(`{"Order":"7"}`)})
	p.until(`{"Paid":0}`)
	if _, _, err := p.op.Messages().Send(t.Context(), operate.OutgoingMessage{Kind: "card.paid", To: "orders",
		Body: []byte(`{"Cents":70}`), Saga: "order", Key: "7",
		Instance: saga.ID{15: 1}}); !errors.Is(err, operate.ErrNoInstance) {
		t.Errorf("to another instance of the key: %v", err)
	}
	p.send(operate.OutgoingMessage{Kind: "card.paid", To: "orders", Body: []byte(`{"Cents":12}`), Saga: "order",
		Key: "7"})
	p.until(`{"Paid":12}`)
}

// until waits for the state of order 7. The endpoint polls once an hour, so only a wake-up makes it fast enough.
func (p *post) until(state string) {
	p.Helper()
	end := time.After(pgdev.Patience(20 * time.Second))
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		l, _, err := p.op.Instances().Show(p.Context(), "order", "7")
		p.must(err)
		if string(l.Instance.State) == state {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			p.Fatalf("the state is %s, want %s", l.Instance.State, state)
		}
	}
}
