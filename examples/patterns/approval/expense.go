package approval

import (
	"slices"
	"time"

	"github.com/edda-go/edda/saga"
)

// page saga

const (
	day         = 24 * time.Hour
	remindAfter = day
	patience    = 3        // requests to the manager alone
	remembered  = 30 * day // how long a second decision is recognized
)

// Expense is the state: who may decide.
type Expense struct {
	Cents int      `json:"cents"`
	Asked []string `json:"asked"`
	Boss  string   `json:"boss"`
	Times int      `json:"times"` // number of requests
}

func (e *Expense) submit(ctx *saga.Context, m Submit) error {
	if !ctx.IsNew() {
		return nil
	}
	e.Cents, e.Asked, e.Boss = m.Cents, []string{m.Manager}, m.Boss
	return e.ask(ctx, Remind{})
}

// ask requests a decision now and each day, at first from the manager, later from the boss too.
func (e *Expense) ask(ctx *saga.Context, _ Remind) error {
	if e.Times == patience {
		e.Asked = append(e.Asked, e.Boss)
	}
	e.Times++
	for _, person := range e.Asked {
		ctx.Send(Ask{Expense: ctx.Key(), Person: person})
	}
	ctx.Timeout(remindAfter, Remind{})
	return nil
}

func (e *Expense) decide(ctx *saga.Context, m Decide) error {
	if !slices.Contains(e.Asked, m.By) {
		return saga.Discard("the person has no request to decide")
	}
	ctx.Publish(Decided{Expense: ctx.Key(), Approved: m.Approve, By: m.By})
	ctx.Complete()
	return nil
}

// Expenses has an instance for each expense that waits, or was decided of late.
var Expenses = saga.Define("expense", saga.Options{Remember: remembered},
	saga.StartedBy(func(m Submit) string { return m.Expense }, (*Expense).submit),
	saga.Handles(func(m Decide) string { return m.Expense }, (*Expense).decide),
	saga.OnTimeout((*Expense).ask))

// end
