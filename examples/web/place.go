package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
)

const insertOrder = `INSERT INTO shop_order (id, item, quantity, cents, note) VALUES ($1, $2, $3, $4, $5)`

const uniqueViolation = "23505"

// placer puts an order into the database, whole or not at all. A second time it does nothing.
type placer func(ctx context.Context, f form) error

// place writes the order and sends PlaceOrder in one transaction of pgx. The message goes first: when its id was used
// before, this order exists already.
func (s *site) place(ctx context.Context, f form) error {
	return s.bus.InTx(ctx, func(tx pgx.Tx) error {
		sent, err := s.bus.SendTx(ctx, tx, f.message(), saga.WithID(f.id))
		if err != nil || sent.Duplicate {
			return err
		}
		_, err = tx.Exec(ctx, insertOrder, f.id.String(), f.Item, f.quantity, f.cents(), f.Note)
		return err
	})
}

// placeSQL does the same in a transaction of database/sql.
func (s *site) placeSQL(ctx context.Context, f form) error {
	return s.bus.SQL(s.db).InTx(ctx, func(tx *sql.Tx) error {
		sent, err := s.bus.SQL(s.db).SendTx(ctx, tx, f.message(), saga.WithID(f.id))
		if err != nil || sent.Duplicate {
			return err
		}
		_, err = tx.ExecContext(ctx, insertOrder, f.id.String(), f.Item, f.quantity, f.cents(), f.Note)
		return err
	})
}

// take reads the form and places the order. The same form, sent again, shows the same order.
func (s *site) take(place placer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := r.ParseForm(); err != nil {
			s.complain(w, r, http.StatusBadRequest, "The form could not be read.")
			return
		}
		f := readForm(r.PostForm)
		if len(f.Faults) > 0 {
			s.show(w, r, http.StatusBadRequest, "form.html", f)
			return
		}
		err := place(r.Context(), f)
		unknown := (*bus.OutcomeUnknownError)(nil)
		if errors.As(err, &unknown) { // the form has its own id, so it may be placed again
			err = place(r.Context(), f)
		}
		var refusal interface{ SQLState() string }
		if errors.As(err, &refusal) && refusal.SQLState() == uniqueViolation {
			err = nil // placed before Edda's memory of ids begins; nothing was sent now
		}
		switch {
		case errors.Is(err, bus.ErrIDConflict):
			s.complain(w, r, http.StatusConflict, "This form was sent before, with something else in it. Begin a "+
				"new order.")
		case err != nil:
			s.fail(w, r, err)
		default:
			http.Redirect(w, r, "/orders/"+f.id.String(), http.StatusSeeOther)
		}
	}
}
