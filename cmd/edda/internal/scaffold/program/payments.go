package main

import "github.com/edda-go/edda/bus"

// chargeCard is a service that answers. No transaction is open while it calls the bank; if it returns an error, it is
// called again later.
func chargeCard(ctx *bus.Context, m ChargeCard) error {
	key := ctx.Info().ID.String() // the same on each attempt, so that the bank takes the money once
	receipt, err := bank(key, m.Cents)
	if err != nil {
		return err
	}
	ctx.Reply(CardCharged{Receipt: receipt})
	return nil
}

// bank stands in for the client of a real one.
func bank(key string, _ int) (receipt string, err error) { return "receipt of " + key, nil }
