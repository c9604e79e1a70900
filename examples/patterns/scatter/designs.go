package scatter

import (
	"fmt"
	"math"
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// design says into how many parts a saga divides n requests. A part of one request is that request; a larger one goes
// to a saga of its own, which is one level deeper.
type design struct {
	parts    func(n, depth int) int
	oneByOne bool // the next part is sent when the last one is answered
}

var designs = map[string]design{
	"flat": {parts: func(n, _ int) int { return n }},
	"tree": {parts: func(n, _ int) int { return min(n, 2) }},
	"chunks": {parts: func(n, depth int) int {
		if depth > 0 {
			return n
		}
		return int(math.Ceil(math.Sqrt(float64(n))))
	}},
	"sequential": {parts: func(n, _ int) int { return n }, oneByOne: true},
}

// stepMost is how many messages one step sends. What is left is sent by the next step, so that a batch stays small.
const stepMost = 250

// Gathering is the state: what was asked for, how far that is, and what has come.
type Gathering struct {
	Asked   Gather
	Sent    int // parts
	Awaited int // parts that were sent and not answered
	Total   Total
}

func (g *Gathering) begin(ctx *saga.Context, m Gather) error {
	if _, ok := designs[m.Design]; !ok {
		return saga.Permanent(fmt.Errorf("there is no design %q", m.Design))
	}
	g.Asked = m
	g.scatter(ctx)
	return nil
}

// scatter sends the parts that have not been sent. The sizes of two parts differ by one at most.
func (g *Gathering) scatter(ctx *saga.Context) {
	d, n := designs[g.Asked.Design], g.Asked.Last-g.Asked.First
	parts, most := d.parts(n, g.Asked.Depth), stepMost
	if d.oneByOne {
		most = 1
	}
	for until := min(parts, g.Sent+most); g.Sent < until; g.Sent++ {
		part := g.Asked
		part.Depth++
		part.First, part.Last = g.Asked.First+g.Sent*n/parts, g.Asked.First+(g.Sent+1)*n/parts
		if part.Last-part.First == 1 {
			ctx.Send(Ask{Run: part.Run, Number: part.First, Bytes: part.Bytes})
		} else {
			ctx.Send(part)
		}
		g.Awaited++
	}
	if g.Sent < parts && !d.oneByOne {
		ctx.Timeout(0, More{})
	}
}

func (g *Gathering) more(ctx *saga.Context, _ More) error {
	g.scatter(ctx)
	return nil
}

func (g *Gathering) answered(ctx *saga.Context, m Answer) error { return g.count(ctx, total(m.Value)) }
func (g *Gathering) part(ctx *saga.Context, m Part) error       { return g.count(ctx, m.Total) }

func (g *Gathering) count(ctx *saga.Context, t Total) error {
	g.Total.add(t)
	g.Awaited--
	if designs[g.Asked.Design].oneByOne {
		g.scatter(ctx)
	}
	switch {
	case g.Total.Count < g.Asked.Last-g.Asked.First:
		return nil
	case ctx.HasOriginator(): // a saga asked
		ctx.ReplyToOriginator(Part{Total: g.Total})
	default:
		ctx.Send(Gathered{Run: g.Asked.Run, Total: g.Total})
	}
	ctx.Complete()
	return nil
}

func keyOf(m Gather) string { return fmt.Sprintf("%s/%d-%d", m.Run, m.First, m.Last) }

// Saga gathers the answers, in the design that the message names.
func Saga(store saga.Store) *saga.Definition {
	return saga.Define("gather", saga.Options{Store: store},
		saga.StartedBy(keyOf, (*Gathering).begin),
		saga.OnTimeout((*Gathering).more),
		saga.OnReply((*Gathering).answered, saga.IfMissing(saga.MissingDeadLetter)),
		saga.OnReply((*Gathering).part, saga.IfMissing(saga.MissingDeadLetter)),
	)
}

// Keeping is the state of a saga that keeps the texts of the replies.
type Keeping struct {
	Gathering
	Kept []string
}

func (k *Keeping) begin(ctx *saga.Context, m Gather) error { return k.Gathering.begin(ctx, m) }
func (k *Keeping) more(ctx *saga.Context, m More) error    { return k.Gathering.more(ctx, m) }

func (k *Keeping) answered(ctx *saga.Context, m Answer) error {
	k.Kept = append(k.Kept, m.Text)
	return k.Gathering.answered(ctx, m)
}

// KeepSaga is the saga of the flat design that keeps the texts of the replies in its state.
func KeepSaga(store saga.Store) *saga.Definition {
	return saga.Define("keep", saga.Options{Store: store},
		saga.StartedBy(keyOf, (*Keeping).begin),
		saga.OnTimeout((*Keeping).more),
		saga.OnReply((*Keeping).answered, saga.IfMissing(saga.MissingDeadLetter)),
	)
}

// DoWork answers a request: a plain handler, which runs beside others on any server.
func DoWork(ctx *bus.Context, _ pgx.Tx, m Ask) error {
	reply := Answer{Run: m.Run, Number: m.Number, Value: answerTo(m.Number), Text: strings.Repeat("x", m.Bytes)}
	if m.To != "" {
		ctx.Send(reply, saga.To(m.To))
	} else {
		ctx.Reply(reply)
	}
	return nil
}
