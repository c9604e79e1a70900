package payments

import (
	"strings"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/examples/two-databases/contract"
	"github.com/jackc/pgx/v5"
)

// charge writes the payment and answers. The row, the answer and the end of the command commit together, so there is
// one payment for each command. It does not check whether the order has a payment already: a command that came twice
// would be a second row.
//
// The bank is this table. A bank that is called over the network belongs in a leased handler (bus.Handle), which passes
// the id of the message as its idempotency key.
func charge(ctx *bus.Context, tx pgx.Tx, m contract.ChargeCard) error {
	refused := Refuses(m.Card)
	if refused {
		ctx.Reply(contract.CardDeclined{OrderID: m.OrderID, Reason: "the card is blocked"})
	} else {
		ctx.Reply(contract.CardCharged{OrderID: m.OrderID, Cents: m.Cents})
	}
	_, err := tx.Exec(ctx, `INSERT INTO payment (order_id, cents, declined) VALUES ($1, $2, $3)`, m.OrderID, m.Cents,
		refused)
	return err
}

// Refuses reports whether a card is declined: when its number ends in 7.
func Refuses(card string) bool { return strings.HasSuffix(card, "7") }
