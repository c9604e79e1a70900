// Command web is a shop whose pages follow an order while it is paid, packed and shipped.
//
//	go run ./examples/web            # and open the address that it prints
//	go run ./examples/web -h
//
// # What it shows
//
// A request writes the shop's own row and sends the message that starts the saga in one transaction: POST /orders by
// pgx, POST /sql/orders by database/sql. The form carries the id of the order that it will make, so that a form that is
// sent twice, by a double click or by a browser that heard no answer, is one order.
//
// The page of an order is whole without JavaScript: it shows the state as it is now. With JavaScript it follows the
// saga by server-sent events. bus.Watch asks the database once for all pages that are open in a process, so a page
// costs a connection of HTTP and none of Postgres. The stream ends when the order does, or when the server is about to
// stop, whereupon the browser comes back by itself with the version that it has seen, to this server or to another one.
//
// What outlives the saga is in the shop's own table: the saga has its outcome booked there, and completes when that is
// done. So a page never has to guess what became of an instance that is gone.
//
// # Failures
//
// A process that dies takes its streams with it and nothing else; browsers connect again. docs/guide/web.md says what
// each crash leaves.
//
// Reading order: place.go (the transaction), order.go (the saga), events.go (the stream), view.go, pages.go, main.go
// (the wiring).
package main
