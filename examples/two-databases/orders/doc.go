// Package orders is the first service: it takes orders, and follows each until it is paid or declined. It has a
// database of its own, and no access to the database of the payments service: it sends messages to that service
// instead.
//
// Read order.go (the saga), page.go (the buyer's page), place.go (how an order begins), service.go (the service in a
// process), tables.sql.
package orders
