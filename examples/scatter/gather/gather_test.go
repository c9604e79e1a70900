package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/eddatest"
	"github.com/edda-go/edda/operate"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
	"github.com/jackc/pgx/v5/pgxpool"
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
			var want Total
			for number := range n {
				want.add(totalOf(number))
				if p.asked[number] != 1 {
					t.Errorf("%s of %d: request %d was sent %d times", name, n, number, p.asked[number])
				}
			}
			if got != want {
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

func totalOf(number int) Total { return total(answerTo(number)) }

// What comes in are rows of a table: the saga is written when it begins and when it ends, and nothing contends for it.
func TestAppendLeavesTheSagaAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	ended := make(chan struct{}, 1)
	b, err := bus.New(pool, bus.Options{AutoInstall: true, Logger: slog.New(slog.DiscardHandler),
		Events: func(e bus.Event) {
			if h, ok := e.(bus.Handled); ok && h.Info.Kind == (Gathered{}).Kind() {
				ended <- struct{}{}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	runEndpoints(t, b, func(ctx context.Context) {
		if _, err := b.Send(ctx, Collect{Run: "r", Requests: 40}); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Minute):
			t.Error("the run did not end")
		}
	})
	o, err := operate.New(pool, operate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := o.Sagas().Counters(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(c operate.SagaCounters) bool { return c.Saga == "collect" })
	if at < 0 || all[at].Messages.Conflicts != 0 || all[at].Saves.Writes != 2 {
		t.Errorf("%+v; want a saga without conflicts that was written twice", all)
	}
}

// open opens a database with the tables of Edda and ours.
func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := eddatest.Pool(t)
	if _, err := pool.Exec(t.Context(), Tables); err != nil {
		t.Fatal(err)
	}
	return pool
}

// runEndpoints runs the append design while f does.
func runEndpoints(t *testing.T, b *bus.Bus, f func(ctx context.Context)) {
	t.Helper()
	items, err := NewItems("edda")
	if err != nil {
		t.Fatal(err)
	}
	var runners []edda.Runner
	for name, parts := range map[string][]bus.Part{
		"desk":     {bus.Saga(CollectSaga(saga.Pessimistic))},
		"requests": {bus.HandleTx(DoWork)},
		"items":    {bus.HandleTx(items.Keep), bus.HandleTx(items.Look)},
		"ledger":   {bus.HandleTx(Enter)},
	} {
		e, err := bus.NewEndpoint(b, name, bus.EndpointOptions{}, parts...)
		if err != nil {
			t.Fatal(err)
		}
		runners = append(runners, e)
	}
	host, err := edda.NewHost(runners...)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	f(ctx)
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// The check must see what it says it sees.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, pool, err := t.Context(), open(t), error(nil)
	good := Total{}
	for number := range 3 {
		good.add(totalOf(number))
	}
	end := func(run string, t Total) {
		if _, e := pool.Exec(ctx, `INSERT INTO result VALUES ($1, $2, $3, $4)`, run, t.Count, t.Sum,
			t.Squares); e != nil {
			err = e
		}
	}
	end("good", good)
	end("twice", good)
	end("twice", good)
	end("short", Total{Count: 2, Sum: good.Sum, Squares: good.Squares})
	end("swapped", Total{Count: 3, Sum: good.Sum, Squares: good.Squares + 2}) // one reply twice, another never
	end("stranger", good)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Check(ctx, pool, &out, 3, "good", "twice", "short", "swapped", "lost"); err == nil {
		t.Error("the check found nothing wrong")
	}
	for _, want := range []string{"twice: it ended 2 times", "short: 2 replies counted", "swapped: 3 replies counted",
		"stranger: nobody began it", "lost: it did not end", "runs=6 wrong=5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the check did not print %q:\n%s", want, out.String())
		}
	}
}

// An item that comes twice is one, items under wrong keys are left over, and so are those that nobody counted.
func TestCheckSeesItemsThatAreLeft(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), open(t)
	items, err := NewItems("edda")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := CheckLeft(ctx, pool, "edda", &out); err != nil || out.Len() > 0 {
		t.Errorf("nothing is wrong: %v, %s", err, out.String())
	}
	for run, keys := range map[string][]string{"short": {"0", "1"}, "over": {"0", "1", "2", "2 again"}} {
		for _, key := range append(keys, keys...) {
			if _, err := items.kept.Add(ctx, pool, run, key, Kept{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := CheckLeft(ctx, pool, "edda", &out); !errors.Is(err, ErrWrong) ||
		out.String() != "wrong: over: 4 items are left\nwrong: short: 2 items are left\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}
