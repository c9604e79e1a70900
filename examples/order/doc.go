// Command order is a shop in one program: a saga that keeps each order together, and an endpoint each for payments,
// shipping and accounts.
//
//	go run github.com/edda-go/edda/examples/order@latest
//
// It places an order a second, until Ctrl-C. Orders are placed in the shop's own transaction: a row and an event that
// commit together. For each the saga requests the charge and the goods at once, waits for both, ships, and reports
// the end. Many faults are made on purpose, and the pages whose address is printed show them.
//
// "edda demo" runs the same shop for half a minute with thousands of orders, and counts that each has every effect
// exactly once.
//
// Reading order: shop/messages.go, shop/order.go (the saga), shop/handlers.go, shop/shop.go, main.go.
package main
