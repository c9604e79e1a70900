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
// Package lab has what the scenarios share: workers, ledger, verdict, report. Each scenario is a package beside it:
// crash, limits (with order), schedule, hostile, permits, remote, viewers. Scenarios that need a broker are in border,
// a module of its own: nobody who uses Edda has to link a broker.
package main
