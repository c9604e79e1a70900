// page payments

package main

import (
	"github.com/edda-go/edda/bus"
)

// payments are a service of ours that asks the bank for money.
type payments struct{ bank *bank }

// charge is a handler. No transaction is open while it waits for the bank.
func (p payments) charge(ctx *bus.Context, m ChargeCard) error {
	key := ctx.Info().ID.String() // the same on every attempt
	if err := p.bank.charge(key, m.Cents); err != nil {
		return err // it is tried again
	}
	ctx.Reply(CardCharged{Cents: m.Cents, Receipt: key})
	return nil
}

// end
