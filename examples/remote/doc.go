// Command remote runs two programs: a shop with a database, whose schedule wants invoices, and a worker without one,
// which makes them. They talk over NATS JetStream alone.
//
//	go run .            # ten seconds
//	go run . -for 1m
//
// It is a module of its own, because it links the NATS server: run it in its directory. No server has to run: Postgres
// is started from installed binaries, unless DATABASE_URL names one.
//
// The exit code is 0 only if every run has succeeded, and each has its invoice, by its key. README.md has the way of a
// run.
//
// Reading order: shop/shop.go and worker/worker.go (with listen), broker.go (how Watermill's JetStream is set up),
// main.go, office.go (the check).
package main
