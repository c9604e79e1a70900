package main

import (
	"cmp"
	"errors"
	"log"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// payments are a service of ours that asks the bank for money.
type payments struct{ bank *bank }

// charge is a handler. No transaction is open while it waits for the bank.
func (p payments) charge(ctx *bus.Context, m ChargeCard) error {
	key := ctx.Info().ID.String() // the same on every attempt
	err := p.bank.charge(key, m.Cents, m.Currency)
	switch {
	case errors.Is(err, errRevoked):
		return saga.Permanent(err) // no other attempt can help: a dead letter at once
	case err != nil:
		return err // it is tried again
	}
	ctx.Reply(CardCharged{Cents: m.Cents, Currency: m.Currency, Receipt: key})
	return nil
}

// chargeFromV1 makes an old message a new one.
func chargeFromV1(old ChargeCardV1) (ChargeCard, error) {
	return ChargeCard{Cents: old.Cents, Currency: euro}, nil
}

// refund is a handler too. A real one calls the bank as charge does, with the id of its message as the key.
func (p payments) refund(ctx *bus.Context, m RefundCard) error {
	log.Printf("payments: %d cents in %s go back, under the key %s", m.Cents, cmp.Or(m.Currency, euro), ctx.Info().ID)
	return nil
}
