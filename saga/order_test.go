package saga_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/edda-go/edda/saga"
)

// The saga that the tests of this package step.

type place struct {
	Order string
	Total int64
	Act   string
}
type charged struct {
	Order string
	Cents int64
}
type stocked struct{ Left int }
type overdue struct{}
type charge struct {
	Order string
	Cents int64
}
type paid struct{ Order string }

func (place) Kind() string   { return "order.place" }
func (charged) Kind() string { return "card.charged" }
func (stocked) Kind() string { return "stock.left" }
func (overdue) Kind() string { return "order.overdue" }
func (charge) Kind() string  { return "card.charge" }
func (paid) Kind() string    { return "order.paid" }

type order struct {
	Total int64
	Seen  int
	Notes map[string]string `json:",omitempty"`
}

func (o *order) place(ctx *saga.Context, m place) error {
	o.Total = m.Total
	o.Seen++
	if do := acts[m.Act]; do != nil {
		return do(o, ctx)
	}
	ctx.Send(charge{Order: m.Order, Cents: m.Total})
	return nil
}

func (o *order) charged(ctx *saga.Context, m charged) error {
	ctx.Publish(paid{Order: ctx.Key()})
	ctx.Complete()
	return nil
}

func (o *order) stocked(_ *saga.Context, m stocked) error { o.Seen = m.Left; return nil }

func (o *order) overdue(ctx *saga.Context, _ overdue) error { o.Seen = -1; return nil }

// acts maps a key to the action of its step, so that a test chooses the action.
var acts = map[string]func(*order, *saga.Context) error{}

func byOrder(m place) string { return m.Order }

func orders(o saga.Options) *saga.Definition {
	return saga.Define("order", o,
		saga.StartedBy(byOrder, (*order).place),
		saga.Handles(func(m charged) string { return m.Order }, (*order).charged),
		saga.OnReply((*order).stocked),
		saga.OnTimeout((*order).overdue),
	)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ids makes consecutive ids, so that failures are easy to read.
func ids() func() saga.ID {
	n := uint64(100)
	return func() saga.ID { n++; return numbered(n) }
}

func numbered(n uint64) (id saga.ID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

func deliver(m saga.Message, change ...func(*saga.Info)) saga.Delivery {
	body, err := saga.JSON.Encode(m)
	if err != nil {
		panic(err)
	}
	in := saga.Info{ID: numbered(7), CorrelationID: numbered(1), ConversationID: numbered(2), Kind: m.Kind(),
		From: "web", Attempt: 1}
	for _, c := range change {
		c(&in)
	}
	return saga.Delivery{Info: in, Body: body}
}

func turn(in saga.Delivery) *saga.Runtime {
	return &saga.Runtime{In: in, Now: noon, Clock: func() time.Time { return noon }, NewID: ids(), Endpoint: "orders"}
}

func fresh() saga.Instance { return saga.Instance{ID: numbered(50), New: true, Key: "7"} }

// step prepares and steps one delivery, and fails t if it cannot be prepared.
func step(t testing.TB, s *saga.Session, d *saga.Definition, in saga.Delivery) saga.Outcome {
	t.Helper()
	call, err := d.Prepare(in, nil)
	if err != nil {
		t.Fatalf("prepare %s: %v", in.Info.Kind, err)
	}
	return s.Step(context.Background(), turn(in), call)
}

func open(t testing.TB, d *saga.Definition, i saga.Instance) *saga.Session {
	t.Helper()
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(i)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t testing.TB, s *saga.Session) saga.Instance {
	t.Helper()
	i, err := s.Instance()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestStartHandleComplete(t *testing.T) {
	d := orders(saga.Options{})
	s := open(t, d, fresh())
	out := step(t, s, d, deliver(place{Order: "7", Total: 100}))
	if out.Err != nil || len(out.Out) != 1 {
		t.Fatalf("start: %+v", out)
	}
	sent := out.Out[0]
	want := saga.Info{
		ID: numbered(101), CorrelationID: numbered(1), ConversationID: numbered(2), RelatedTo: numbered(7),
		Kind: "card.charge", From: "orders", Origin: numbered(50), Sent: noon,
	}
	if got := fmt.Sprintf("%+v", sent.Info); got != fmt.Sprintf("%+v", want) {
		t.Errorf("info\n got %s\nwant %+v", got, want)
	}
	if string(sent.Body) != `{"Order":"7","Cents":100}` {
		t.Errorf("body %s", sent.Body)
	}
	if i := instance(t, s); string(i.State) != `{"Total":100,"Seen":1}` || i.StateVersion != 1 || i.Saga != "order" {
		t.Errorf("instance %+v", i)
	}
	if !s.Changed() || s.Completed() || !s.Live() {
		t.Errorf("changed %v, completed %v, live %v", s.Changed(), s.Completed(), s.Live())
	}
	out = step(t, s, d, deliver(charged{Order: "7"}))
	if out.Err != nil || !s.Completed() || out.Out[0].Info.Intent != saga.Event {
		t.Errorf("complete: %+v", out)
	}
}

func BenchmarkStep(b *testing.B) {
	d := saga.Define("order", saga.Options{}, saga.StartedBy(byOrder, func(o *order, ctx *saga.Context, m place) error {
		o.Total += m.Total
		ctx.Send(charge{Order: m.Order, Cents: m.Total})
		return nil
	}))
	in := deliver(place{Order: "7777777777777777", Total: 100, Act: "0123456789012345678901234567890123456789"})
	in.Info.ID = numbered(9)
	tn := turn(in)
	inst := saga.Instance{ID: numbered(50), Key: "7", Version: 3, StateVersion: 1,
		State: []byte(`{"Total":100,"Seen":1,"Notes":{"a":"0123456789012345678901234"}}`)}
	ctx := context.Background()
	b.ReportMetric(float64(len(in.Body)), "body-bytes")
	b.ReportAllocs()
	for b.Loop() {
		call, err := d.Prepare(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		s, err := d.Open(inst)
		if err != nil {
			b.Fatal(err)
		}
		if out := s.Step(ctx, tn, call); out.Err != nil {
			b.Fatal(out.Err)
		}
		if _, err := s.Instance(); err != nil {
			b.Fatal(err)
		}
	}
}
