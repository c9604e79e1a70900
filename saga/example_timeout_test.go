package saga_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/saga"
)

type (
	Invite   struct{ Guest string }
	Accepted struct{ Guest string }
	Remind   struct{ Time int }
)

func (Invite) Kind() string   { return "guest.invite" }
func (Accepted) Kind() string { return "guest.accepted" }
func (Remind) Kind() string   { return "guest.remind" }

type Invitation struct{ Accepted bool }

func (i *Invitation) Send(ctx *saga.Context, _ Invite) error {
	ctx.Timeout(24*time.Hour, Remind{Time: 1}, saga.Named("remind"))
	return nil
}

func (i *Invitation) Remind(ctx *saga.Context, m Remind) error {
	fmt.Println("remind", ctx.Key(), "for time", m.Time) //nolint:forbidigo // an example prints
	ctx.Timeout(24*time.Hour, Remind{Time: m.Time + 1}, saga.Named("remind"))
	return nil
}

func (i *Invitation) Accept(ctx *saga.Context, _ Accepted) error {
	i.Accepted = true
	fmt.Println("no more reminders:", ctx.CancelTimeout("remind")) //nolint:forbidigo // an example prints
	return nil
}

func invitations() *saga.Definition {
	return saga.Define("invitation", saga.Options{},
		saga.StartedBy(func(m Invite) string { return m.Guest }, (*Invitation).Send),
		saga.Handles(func(m Accepted) string { return m.Guest }, (*Invitation).Accept),
		saga.OnTimeout((*Invitation).Remind))
}

// A guest is reminded each day until an answer comes.
func ExampleOnTimeout() {
	ctx, b, end := inMemory(invitations()) // an endpoint, see package memory
	defer end()
	_, err := b.Send(ctx, Invite{Guest: "Ada"})
	check(err)
	check(b.Advance(ctx, 50*time.Hour)) // in a test; elsewhere the database's clock decides
	_, err = b.Send(ctx, Accepted{Guest: "Ada"})
	check(err)
	check(b.Advance(ctx, 50*time.Hour))
	// Output:
	// remind Ada for time 1
	// remind Ada for time 2
	// no more reminders: true
}

// A timeout is a message to the instance itself. A second timeout with the same name replaces the first.
func ExampleContext_Timeout() {
	invite := func(_ *Invitation, ctx *saga.Context, _ Invite) error {
		ctx.Timeout(24*time.Hour, Remind{Time: 1}, saga.Named("remind"))
		ctx.Timeout(48*time.Hour, Remind{Time: 2}, saga.Named("remind"))
		for _, p := range ctx.Timeouts() {
			fmt.Println(p.Kind, "in", p.Due.Sub(ctx.Now()))
		}
		return nil
	}
	ctx, b, end := inMemory(saga.Define("invitation", saga.Options{},
		saga.StartedBy(func(m Invite) string { return m.Guest }, invite), saga.OnTimeout((*Invitation).Remind)))
	defer end()
	_, err := b.Send(ctx, Invite{Guest: "Ada"})
	check(err)
	check(b.Idle(ctx))
	// Output: guest.remind in 48h0m0s
}

// CancelTimeout reports whether the timeout was still pending.
func ExampleContext_CancelTimeout() {
	accept := func(_ *Invitation, ctx *saga.Context, _ Accepted) error {
		fmt.Println("cancelled:", ctx.CancelTimeout("remind"))
		fmt.Println("cancelled again:", ctx.CancelTimeout("remind"))
		return nil
	}
	ctx, b, end := inMemory(saga.Define("invitation", saga.Options{},
		saga.StartedBy(func(m Invite) string { return m.Guest }, (*Invitation).Send),
		saga.Handles(func(m Accepted) string { return m.Guest }, accept), saga.OnTimeout((*Invitation).Remind)))
	defer end()
	for _, m := range []saga.Message{Invite{Guest: "Ada"}, Accepted{Guest: "Ada"}} {
		_, err := b.Send(ctx, m)
		check(err)
		check(b.Idle(ctx))
	}
	// Output:
	// cancelled: true
	// cancelled again: false
}
