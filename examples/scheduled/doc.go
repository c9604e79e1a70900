// Command scheduled shows the scheduler at work on two server processes, kills one of them in the middle, and counts
// what came of it.
//
//	go run ./examples/scheduled                        # 40 seconds, a night each 10 of them
//	go run ./examples/scheduled -for 2m -night 5s
//	go run ./examples/scheduled -h
//
// # What runs
//
//	settle/eur … settle/usd   each night, four at a time in a strict group of two: a saga, keyed by the firing's
//	                          due time, asks the bank, enters the balance, and completes. The run lasts until then
//	report/eur … report/usd   after each settlement of their currency
//	poll                      every five seconds
//	rates                     each second, and its handler fails for good: one run is dead, and holds its manifest
//
// A night lasts ten seconds here, so that half a minute shows several: the settlements are due by a cron expression
// with seconds, "*/10 * * * * *" in Europe/Oslo, where a real one says "30 2 * * *".
//
// The program starts itself as two servers. Each has a scheduler and the endpoints, so each may evaluate (one at a
// time, by lease), dispatch and handle. In the middle it kills the one that evaluates by SIGKILL, while settlements are
// at work, and starts it again after a while.
//
// # What it proves
//
// The exit code is 0 only if each due time has one run that succeeded and one effect, none has two, the group of two
// was never exceeded, each settlement was reported once and after it, and rates has one run, which is dead, though many
// more due times have passed. The due times are computed by scheduler.Occurrences from the declarations. The effects
// are rows that the handlers wrote in their transactions, in a table without a constraint, so that a second one would
// be seen.
//
// Reading order: manifests.go, settlement.go and office.go (what a user writes), server.go (one process), show.go with
// internal/procs (the parent), judge.go with check.sql, table.go, main.go.
package main
