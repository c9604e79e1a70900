// Command chaos breaks Edda on purpose, with real processes, SIGKILL and SIGSTOP, and counts what came of it.
//
//	go run ./internal/test/chaos                            every scenario, some twenty minutes
//	go run ./internal/test/chaos -scenario limits -quick    one of them, shortened
//	go run ./internal/test/chaos -h                         the scenarios and their flags
//
// # Promise
//
// It exits with 0 only if no scenario found a violation. The doc of each scenario's package lists what it finds. A line
// with all figures is printed for each, and the first violations; -seed repeats what was drawn.
//
// # Layout
//
// Package lab runs every scenario: it starts the server and the workers, kills and freezes them, keeps the ledger, and
// prints the verdict. A scenario is a package beside it, with a table of what it sends, breaks and checks: crash,
// exchange, hostile, limits (with order), permits, remote, schedule, viewers. Scenarios that need a broker are in the
// module border, so that users of Edda link no broker.
package main
