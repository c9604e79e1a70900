// Command ui shows the pages of Edda over a shop in which much is wrong: a bank that is down, an endpoint that nobody
// runs, mails that cannot be delivered.
//
//	go run ./examples/ui              # prints the address
//	go run ./examples/ui -world dead  # 100,000 dead letters; -h lists the other worlds
//
// The database is the one that DATABASE_URL names, or else a throw-away server made from installed binaries. Ctrl-C
// ends it.
package main
