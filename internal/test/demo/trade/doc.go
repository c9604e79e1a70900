// Package trade runs the shop of examples/order for a while, with failures and its pages, and proves that every order
// had each effect exactly once. "edda demo" runs it.
//
// # Proof
//
// At the end it counts, by SQL over the shop's own tables, that every order has each effect exactly once: one end;
// charge, reservation and shipment when it was shipped; and as many refunds as charges, and releases as reservations,
// when it was cancelled. None of these tables has a unique constraint that would hide a second row. Run returns an
// error if an order is wrong, and lists the first wrong orders.
//
// Reading order: settings.go, trade.go, place.go, tally.go, check.go with check.sql, history.go.
package trade
