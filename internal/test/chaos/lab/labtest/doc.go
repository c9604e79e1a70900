// Package labtest shows that the verdict of a scenario finds what it is there to find.
//
// # Promise
//
// A verdict that bites finds nothing in the ledger of a good run, and in the same ledger, after something was done to
// it, what the test says.
//
// # States
//
// Each judgement begins with an empty ledger, in one Postgres of its own.
//
// # Failures
//
// All of them fail the test.
package labtest
