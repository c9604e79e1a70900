package idempotent

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	mostBytes       = 64 << 10
	uniqueViolation = "23505"
)

// page handler

// Shop takes orders.
type Shop struct {
	Bus      *bus.Bus
	Customer func(*http.Request) string // the name of the signed-in customer
}

// Place handles POST /orders. A request that comes again with its Idempotency-Key gets the same answer.
func (s Shop) Place(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var m PlaceOrder
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes)).Decode(&m)
	if err != nil || key == "" || len(key) > 255 {
		http.Error(w, "want an order, and an Idempotency-Key of 1 to 255 bytes", http.StatusBadRequest)
		return
	}
	customer := s.Customer(r)
	id := idOf(customer, key)
	m.Order = id.String()
	err = s.Bus.InTx(r.Context(), func(tx pgx.Tx) error {
		sent, err := s.Bus.SendTx(r.Context(), tx, m, saga.WithID(id))
		if err != nil || sent.Duplicate {
			return err // the order of a duplicate exists already
		}
		_, err = tx.Exec(r.Context(), `INSERT INTO shop_order (id, customer, cents) VALUES ($1, $2, $3)`,
			m.Order, customer, m.Cents)
		return err
	})
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, bus.ErrIDConflict):
		http.Error(w, "this key was used for a different order", http.StatusUnprocessableEntity)
	case err == nil, errors.As(err, &refused) && refused.Code == uniqueViolation: // a key from last month
		w.Header().Set("Location", "/orders/"+m.Order)
		w.WriteHeader(http.StatusCreated)
	default:
		slog.ErrorContext(r.Context(), "place an order", "order", m.Order, "error", err)
		http.Error(w, "try again with the same key", http.StatusServiceUnavailable)
	}
}

// idOf makes an id of a key, which is free text, and of its customer, so that the keys of others are out of reach.
func idOf(customer, key string) saga.ID {
	sum := sha256.Sum256([]byte(customer + "\x00" + key))
	return saga.ID(sum[:len(saga.ID{})])
}

// end
