package outbox

import (
	"database/sql"
	"errors"
	"log/slog"
	"net/http"

	"github.com/edda-go/edda/bus"
)

// page handler

// Shop ships orders.
type Shop struct {
	Bus *bus.Bus
	DB  *sql.DB // the bus's database, by any driver
}

const ship = `UPDATE shop_order SET shipped = now() WHERE id = $1 AND shipped IS NULL RETURNING webhook`

// Ship handles POST /orders/{id}/shipped.
func (s Shop) Ship(w http.ResponseWriter, r *http.Request) {
	ctx, call := r.Context(), CallWebhook{Order: r.PathValue("id")}
	err := s.Bus.SQL(s.DB).InTx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, ship, call.Order).Scan(&call.URL); err != nil {
			return err
		}
		_, err := s.Bus.SQL(s.DB).SendTx(ctx, tx, call) // commits with the row, or not at all
		return err
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "there is no such order that waits", http.StatusNotFound)
	case err != nil:
		slog.ErrorContext(ctx, "ship an order", "order", call.Order, "error", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// end
