// Package shop is a shop built on sagas: the saga of an order, and the services that it uses.
//
// Things go wrong on purpose, decided by the number of the order, so that every run is the same:
//
//	one call of the bank in ten fails                   retried, without an effect on the order
//	the bank refuses every 100th card                   the order is cancelled, its goods are released
//	every 500th card cannot be read                     the charge is a dead letter; the order's timeout cancels it
//	the bank is away for every 250th order              the charge comes after the timeout, and is refunded
//
// Every effect is a row of a table without a constraint, so that a duplicate effect is a second row.
//
// Reading order: messages.go, order.go (the saga), handlers.go, shop.go.
package shop
