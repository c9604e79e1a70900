package bus

import (
	"context"
	"fmt"

	"github.com/edda-go/edda/internal/pg"
	"github.com/jackc/pgx/v5"
)

// ReceivedTx is for handlers of one's own that take messages from a broker: it remembers, in the transaction of their
// effects, that the message id from source has come. fresh is false when it had come before: then do nothing, and tell
// the broker that it is done. It waits while another transaction has the same id in hand. Call it before anything that
// changes a row, so that two who wait for each other are rare; Postgres ends one of them with 40P01.
//
// Programs without this package call the SQL function received. It belongs to the runtime role.
func (b *Bus) ReceivedTx(ctx context.Context, tx pgx.Tx, source, id string) (fresh bool, err error) {
	if tx == nil {
		return false, fmt.Errorf("receive message %.80q from %.80q: %w", id, source, errNilTx)
	}
	if fresh, err = b.ids.ReceivedTx(ctx, tx, source, id); err != nil {
		return false, fmt.Errorf("receive message %.80q from %.80q: %w", id, source, pg.Explain(err))
	}
	return fresh, nil
}
