// Command remote runs two programs: a shop with a database, whose schedule wants invoices, and a worker without one,
// which makes them. They talk over NATS JetStream alone. One of the two is killed every few seconds.
//
//	go run .      half a minute
//	go run . -h
//
// It is a module of its own, because it links the NATS server: run it in its directory. No server has to run: Postgres
// is started from installed binaries, and thrown away.
//
// The exit code is 0 only if every run has succeeded, and each has its invoice, by its key. README.md has the way of a
// run.
//
// Reading order: shop/shop.go and worker/worker.go (what a user writes, with listen), broker.go (how Watermill's
// JetStream is set up), show.go with internal/procs (the parent that kills), check.go, main.go.
package main
