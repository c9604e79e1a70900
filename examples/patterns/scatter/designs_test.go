package scatter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

func TestMain(m *testing.M) { os.Exit(eddatest.Main(m)) }

// Every design, with numbers that it does not divide evenly, sends each request once and adds up each reply once, and
// no saga of the tree waits for more than two.
func TestDesignsAskEveryRequestOnce(t *testing.T) {
	t.Parallel()
	for name := range designs {
		for _, n := range []int{1, 2, 3, 10, 33} {
			p := &play{t: t, desk: sagatest.New(t, Saga(saga.Optimistic)), asked: map[int]int{}}
			got := p.gather(Gather{Run: "r", Design: name, Last: n})
			for number := range n {
				if p.asked[number] != 1 {
					t.Errorf("%s of %d: request %d was sent %d times", name, n, number, p.asked[number])
				}
			}
			if want := Want(n); got != want {
				t.Errorf("%s of %d: %+v, want %+v", name, n, got, want)
			}
			if most := map[string]int{"tree": 2, "sequential": 1}[name]; most > 0 && p.most > most {
				t.Errorf("%s of %d: one step sent %d messages", name, n, p.most)
			}
		}
	}
}

// branches are trees for the test, by name. The saga is the same: a design says into how many parts it divides its
// requests.
var branches = func() map[string]int {
	trees := map[string]int{}
	for _, n := range []int{3, 5, 10} {
		name := fmt.Sprintf("tree of %d", n)
		trees[name], designs[name] = n, design{parts: func(requests, _ int) int { return min(requests, n) }}
	}
	return trees
}()

// The design chunks is the simpler form: a single extra level.
func TestATreeMayHaveAnyNumberOfBranches(t *testing.T) {
	t.Parallel()
	const requests = 120
	for name, n := range branches {
		p := &play{t: t, desk: sagatest.New(t, Saga(saga.Optimistic)), asked: map[int]int{}}
		if got := p.gather(Gather{Run: "r", Design: name, Last: requests}); got.Count != requests ||
			len(p.asked) != requests || p.most != n || p.deepest < 2 {
			t.Errorf("%s: %d replies to %d requests, %d messages of one step, %d levels", name, got.Count, len(p.asked),
				p.most, p.deepest)
		}
	}
	p := &play{t: t, desk: sagatest.New(t, Saga(saga.Optimistic)), asked: map[int]int{}}
	if got := p.gather(Gather{Run: "r", Design: "chunks", Last: requests}); got.Count != requests || p.most != 11 ||
		p.deepest != 1 {
		t.Errorf("chunks: %d replies, %d messages of one step, %d levels below the first; want %d, 11 and 1", got.Count,
			p.most, p.deepest, requests)
	}
}

// play answers what sagas ask for, in place of the bus.
type play struct {
	t       *testing.T
	desk    *sagatest.Run
	asked   map[int]int
	most    int // messages of one step
	deepest int // level of a saga
}

// gather plays one saga and, before it goes on, each that it sends a part to.
func (p *play) gather(m Gather) Total {
	p.t.Helper()
	p.deepest = max(p.deepest, m.Depth)
	deliver(p.t, p.desk.DeliverFrom("desk", m))
	for queue := p.sent(); len(queue) > 0; {
		var answer saga.Message
		switch m := queue[0].(type) {
		case Ask:
			p.asked[m.Number]++
			answer = Answer{Number: m.Number, Value: answerTo(m.Number)}
		case Gather:
			answer = Part{Total: p.gather(m)}
		case Part:
			return m.Total
		}
		deliver(p.t, p.desk.Reply(queue[0], answer))
		queue = append(queue[1:], p.sent()...)
	}
	p.t.Fatal("a saga came to no end")
	return Total{}
}

func (p *play) sent() []saga.Message {
	sent := p.desk.Sent()
	p.most = max(p.most, len(sent))
	return sent
}

func deliver(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Replies are rows of a table: the saga is written when it begins and when it ends, and nothing contends for it. Each
// reply is counted once, and no row is left.
func TestAppendLeavesTheSagaAlone(t *testing.T) {
	t.Parallel()
	const requests = 40
	pool, ended := eddatest.Pool(t), make(chan Total, 1)
	b, err := bus.New(pool, bus.Options{AutoInstall: true, Logger: slog.New(slog.DiscardHandler)})
	deliver(t, err)
	items, err := NewItems("edda")
	deliver(t, err)
	var runners []edda.Runner
	for name, parts := range map[string][]bus.Part{
		"desk":     {bus.Saga(CollectSaga(saga.Pessimistic))},
		"requests": {bus.HandleTx(DoWork)},
		"items":    {bus.HandleTx(items.Keep), bus.HandleTx(items.Look)},
		"ledger":   {bus.Handle(func(_ *bus.Context, m Gathered) error { ended <- m.Total; return nil })},
	} {
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{}, parts...)
		deliver(t, err)
		runners = append(runners, e)
	}
	host, err := edda.NewHost(runners...)
	deliver(t, err)
	deliver(t, host.Install(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	_, err = b.Send(ctx, Collect{Run: "r", Requests: requests})
	deliver(t, err)
	select {
	case got := <-ended:
		if want := Want(requests); got != want {
			t.Errorf("the replies add up to %+v, want %+v", got, want)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the run did not end")
	}
	stop()
	deliver(t, <-ran)
	var left int
	deliver(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM edda.saga_item").Scan(&left))
	o, err := operate.New(pool, operate.Options{})
	deliver(t, err)
	all, err := o.Endpoints().Counters(t.Context(), 0)
	deliver(t, err)
	at := slices.IndexFunc(all, func(c operate.SagaCounters) bool { return c.Saga == "collect" })
	if at < 0 || all[at].Messages.Conflicts != 0 || all[at].Saves.Writes != 2 || left != 0 {
		t.Errorf("%+v, %d items are left; want a saga without conflicts that was written twice", all, left)
	}
}
