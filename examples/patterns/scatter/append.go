package scatter

import (
	"strconv"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/persistence"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The append design: replies go into rows beside the saga, persistence.Items. Handlers that touch no saga write them,
// in an endpoint of their own: each handler makes two trips to the database, and no other message should wait for a
// thousand of them. A message that comes again and again asks whether all rows are there. So the row of the saga is
// written while the saga sends and when it ends, and never for a reply.

const countEvery = 20 * time.Millisecond

// Collecting is the state: what was asked for, and how much of that was sent.
type Collecting struct {
	Asked Collect
	Sent  int
}

func (c *Collecting) begin(ctx *saga.Context, m Collect) error {
	c.Asked = m
	return c.scatter(ctx, More{})
}

func (c *Collecting) scatter(ctx *saga.Context, _ More) error {
	n := c.Asked.Requests
	for until := min(n, c.Sent+stepMost); c.Sent < until; c.Sent++ {
		ctx.Send(Ask{Run: c.Asked.Run, Number: c.Sent, To: "items", Bytes: c.Asked.Bytes})
	}
	if c.Sent < n {
		ctx.Timeout(0, More{})
	} else {
		ctx.Send(CountItems{Key: ctx.Key(), Run: c.Asked.Run, Want: n}, saga.Delay(countEvery))
	}
	return nil
}

func (c *Collecting) end(ctx *saga.Context, m AllThere) error {
	ctx.Send(Gathered{Run: c.Asked.Run, Total: m.Total})
	ctx.Complete()
	return nil
}

// CollectSaga is the saga of the append design.
func CollectSaga(store saga.Store) *saga.Definition {
	return saga.Define("collect", saga.Options{Store: store},
		saga.StartedBy(func(m Collect) string { return m.Run }, (*Collecting).begin),
		saga.OnTimeout((*Collecting).scatter),
		saga.Handles(func(m AllThere) string { return m.Key }, (*Collecting).end,
			saga.IfMissing(saga.MissingDeadLetter)),
	)
}

// Kept is what is kept of an answer.
type Kept struct {
	Value int64
	Text  string `json:",omitempty"`
}

// Items are the answers of the append design, each under the number of its request: an answer that comes twice is one
// item.
type Items struct{ kept *persistence.Items[Kept] }

// NewItems returns the items in a schema of Edda's.
func NewItems(schema string) (*Items, error) {
	kept, err := persistence.NewItems[Kept](schema, "answer")
	return &Items{kept}, err
}

// Keep handles an answer: one row more, and nothing that another row could be in the way of.
func (i *Items) Keep(ctx *bus.Context, tx pgx.Tx, m Answer) error {
	_, err := i.kept.Add(ctx, tx, m.Run, strconv.Itoa(m.Number), Kept{Value: m.Value, Text: m.Text})
	return err
}

// Look handles CountItems: it sends that to itself again, for later, until all items are there. It sees those that are
// committed, so the last look sees all. That one adds them up, and takes them away.
func (i *Items) Look(ctx *bus.Context, tx pgx.Tx, m CountItems) error {
	n, err := i.kept.Count(ctx, tx, m.Run)
	if err != nil {
		return err
	}
	if n < m.Want {
		ctx.Send(m, saga.Delay(countEvery))
		return nil
	}
	var t Total
	for item, err := range i.kept.All(ctx, tx, m.Run) {
		if err != nil {
			return err
		}
		t.add(total(item.Value.Value))
	}
	ctx.Send(AllThere{Key: m.Key, Total: t})
	_, err = i.kept.Clear(ctx, tx, m.Run)
	return err
}
