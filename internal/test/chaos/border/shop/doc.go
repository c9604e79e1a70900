// Package shop puts the services of examples/two-databases together, each with a Postgres server of its own, over a
// broker, has orders placed, and checks each of them in both databases. The scenario shop of package border kills all
// of it.
//
// # Promise
//
// Judge finds every order that was not paid or declined once, with the sum and by the card that it was placed with,
// told to the buyer once, and shipped once if it was paid; and every saga that lives, every message that is dead,
// discarded, left in a queue of either database or held by the broker. The tables that it counts have no constraint:
// what happens twice is there twice.
//
// # States and failures
//
// A Shop is open until Close. Open returns an error when a server, the broker or a service does not come up. Drain
// returns when everything is at rest, or when its time is over; what is left then is for Judge to find.
package shop
