package gather

import (
	_ "embed"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

// The append design: what comes in goes into rows of a table of ours, written by handlers that touch no saga, in an
// endpoint of their own: each of them makes two trips to the database, and nobody should have to wait for a thousand of
// them. Whether all of it is there is asked now and then, by a message that comes again until it is so. So the row of
// the saga is written while it sends and when it ends, and never for what comes in.

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

// KeepItem handles an answer: one row more, and nothing that another row could be in the way of.
func KeepItem(ctx *bus.Context, tx pgx.Tx, m Answer) error {
	_, err := tx.Exec(ctx, `INSERT INTO item (run, number, value, text) VALUES ($1, $2, $3, $4)`, m.Run, m.Number,
		m.Value, m.Text)
	return err
}

//go:embed count.sql
var countSQL string

// LookForItems handles CountItems: it asks itself again later until all items are there. It sees those that are
// committed, so the last look sees all.
func LookForItems(ctx *bus.Context, tx pgx.Tx, m CountItems) error {
	var t Total
	if err := tx.QueryRow(ctx, countSQL, m.Run).Scan(&t.Count, &t.Sum, &t.Squares); err != nil {
		return err
	}
	if t.Count < m.Want {
		ctx.Send(m, saga.Delay(countEvery))
		return nil
	}
	ctx.Send(AllThere{Key: m.Key, Total: t})
	return nil
}
