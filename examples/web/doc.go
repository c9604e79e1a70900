// Command web is a shop whose pages follow an order while it is paid, packed and shipped.
//
//	go run ./examples/web            # and open the address that it prints
//	go run ./examples/web -h
//
// # Features
//
// A request writes the shop's own row and sends the message that starts the saga in one transaction: POST /orders by
// pgx, POST /sql/orders by database/sql. The form carries the id of the order that it will make, so that a form that is
// sent twice, by a double click or by a browser that heard no answer, is one order.
//
// The page of an order is whole without JavaScript: it shows the state as it is now. With JavaScript it follows the
// saga by server-sent events. bus.Watch queries the database once for all pages that are open in a process, so a page
// costs a connection of HTTP but no connection of Postgres. The stream ends when the order does, or when the server is
// about to stop. Then the browser reconnects by itself with the version that it has shown, to this or a different
// server.
//
// The shop's own table outlives the saga: the saga has its outcome booked there, and completes when that is done. So a
// page finds the outcome of an instance that has been deleted.
//
// # Failures
//
// A process that dies takes its streams with it and nothing else; browsers connect again. docs/guide/web.md describes
// the effects of each crash.
//
// Reading order: place.go (the transaction), order.go (the saga), events.go (the stream), view.go, pages.go, main.go
// (the wiring).
package main
