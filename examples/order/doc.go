// Command order is a shop in one program: a saga that keeps each order together, and a payment, a shipping and
// an accounts endpoint beside it, wired with fx.
//
//	go run ./examples/order            # as "make demo" does
//	go run ./examples/order -stay      # and keep its pages open until Ctrl-C
//	go run ./examples/order -memory    # the same endpoints without a database
//	go run ./examples/order -h
//
// # What it shows
//
// Orders are placed in the shop's own transaction, a row and an event that commit together. For each the saga asks at
// once for the money and for the goods, waits for both, ships, and reports the end. Things go wrong on purpose, decided
// by the number of the order, so that every run is the same:
//
//	one call of the bank in ten fails                   retried, and nobody notices
//	the bank refuses every 100th card                   the order is cancelled, its goods are released
//	every 500th card cannot be read                     the charge is a dead letter; the order's timeout cancels it
//	the bank is away for every 250th order              the charge comes after the timeout, and is refunded
//
// # What it proves
//
// At the end it counts, by SQL over the shop's own tables, that every order has each effect exactly once: one end;
// charge, reservation and shipment when it was shipped; and as many refunds as charges, and releases as reservations,
// when it was cancelled. None of these tables has a unique constraint that would hide a second row. The exit code is 1
// when one order is wrong, and the first ones are listed. With -memory the effects are counted in memory, and the check
// is the same.
//
// Reading order: order.go (the saga), shop.go (the handlers), app.go (the wiring), books.go, place.go, tally.go,
// check.sql; inmemory.go is the program without a database.
package main
