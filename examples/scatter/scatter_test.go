package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/edda-go/edda/internal/pgdev"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/sagatest"
)

// Every design, with numbers that it does not divide evenly, sends each request once and adds up each reply once, and
// no saga of the tree waits for more than two.
func TestDesignsAskEveryRequestOnce(t *testing.T) {
	t.Parallel()
	for name := range designs {
		for _, n := range []int{1, 2, 3, 10, 33} {
			p := &play{t: t, desk: sagatest.New(t, gather(saga.Optimistic)), asked: map[int]int{}}
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
		p := &play{t: t, desk: sagatest.New(t, gather(saga.Optimistic)), asked: map[int]int{}}
		if got := p.gather(Gather{Run: "r", Design: name, Last: requests}); got.Count != requests ||
			len(p.asked) != requests || p.most != n || p.deepest < 2 {
			t.Errorf("%s: %d replies to %d requests, %d messages of one step, %d levels", name, got.Count, len(p.asked),
				p.most, p.deepest)
		}
	}
	p := &play{t: t, desk: sagatest.New(t, gather(saga.Optimistic)), asked: map[int]int{}}
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

// The whole program with small numbers: 23 requests are divided by no design evenly.
func TestProgram(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	code := start([]string{"-requests", "23", "-quiet", "50ms", "-for", "1ms"}, &out, &complaints)
	if code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	for _, want := range []string{"wrong=0", "flat   optimistic", "tree  pessimistic", "chunks   optimistic",
		"sequential  pessimistic", "append"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the program did not print %q:\n%s", want, out.String())
		}
	}
}

func TestProgramWithAFullQueue(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	if code := start([]string{"-requests", "6000", "-design", "flat", "-store", "pessimistic", "-workers", "1",
		"-full"}, &out, &complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	if !strings.Contains(out.String(), "runs=1 wrong=0") {
		t.Errorf("it printed:\n%s", out.String())
	}
}

// What comes in are rows of a table: the saga is written when it begins and when it ends, and nothing contends for it.
func TestAppendLeavesTheSagaAlone(t *testing.T) {
	t.Parallel()
	var out, complaints bytes.Buffer
	if code := start([]string{"-requests", "40", "-design", "append", "-quiet", "50ms", "-for", "1ms"}, &out,
		&complaints); code != 0 {
		t.Fatalf("the program ended with %d: %s\n%s", code, complaints.String(), out.String())
	}
	for line := range strings.Lines(out.String()) {
		cells := strings.Fields(line)
		if len(cells) > 10 && cells[1] == "-" && (cells[6] != "0" || cells[10] != "2.0") {
			t.Errorf("%s conflicts and %s saga writes for each scatter, want 0 and 2.0:\n%s", cells[6], cells[10],
				out.String())
		}
	}
	if !strings.Contains(out.String(), "append      -") {
		t.Errorf("there is no line of the design:\n%s", out.String())
	}
}

// The check must see what it says it sees.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, own := t.Context(), pgdev.Schema(t)
	pool, err := connect(ctx, pgdev.DSN(t), own)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+own+";"+tables); err != nil {
		t.Fatal(err)
	}
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
	end("items", good)
	end("over", good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `INSERT INTO item VALUES ('items', 0, 1), ('items', 1, 1), ('items', 1, 1),
		('over', 0, 1), ('over', 1, 1), ('over', 2, 1), ('over', 2, 1)`); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := check(ctx, lab{pool, own, &out}, 3,
		[]string{"good", "twice", "short", "swapped", "items", "over", "lost"}); err == nil {
		t.Error("the check found nothing wrong")
	}
	for _, want := range []string{"twice: it ended 2 times", "short: 2 replies counted", "swapped: 3 replies counted",
		"stranger: nobody began it",
		"items: 3 items of 2 requests", "over: 4 items of 3 requests", "lost: it did not end", "runs=8 wrong=7"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the check did not print %q:\n%s", want, out.String())
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-requests", "0"}, {"-workers", "9"}, {"-design", "round"}, {"-store", "adaptive"},
		{"-design", "tree", "-full"},
		{"-unrelated", "0"}, {"-quiet", "0s"}, {"now"}, {"-what"}} {
		var out, complaints bytes.Buffer
		if code := start(args, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), "-h for help") {
			t.Errorf("%v ended with %d and %q, want 2 and where help is", args, code, complaints.String())
		}
	}
	var out bytes.Buffer
	if code := start([]string{"-h"}, &out, &out); code != 0 || !strings.Contains(out.String(), "-workers") {
		t.Errorf("-h ended with %d and %q", code, out.String())
	}
}
