package comparison

import (
	"github.com/edda-go/edda/bus"
	"github.com/jackc/pgx/v5"
)

// page step
// count writes a row. The row, the message that follows and the end of this message commit together.
func count(ctx *bus.Context, tx pgx.Tx, m OrderPaid) error {
	if _, err := tx.Exec(ctx, "INSERT INTO sale (number) VALUES ($1)", m.Order); err != nil {
		return err
	}
	ctx.Send(Welcome{Email: m.Order + "@example.org"})
	return nil
}

// end
