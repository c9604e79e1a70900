// Package orders is the first service: it takes orders, and follows each until it is paid or declined. It has a
// database of its own, and no way into the one of the payments service: what it wants from there it asks for by
// message.
//
// Read order.go (the saga), page.go (what a buyer is shown), place.go (how an order begins), service.go (what a process
// of the service runs), tables.sql.
package orders
