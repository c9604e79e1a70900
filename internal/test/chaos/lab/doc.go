// Package lab is what the scenarios of internal/test/chaos share: a Postgres of their own, worker processes, a ledger,
// a verdict and a report.
//
// # Promise
//
// A scenario passes only if nothing that it forbids was found. The ledger is a schema of tables that Edda does not
// know. None of them has a constraint, so that what happens twice is there twice. What workers do is written by their
// handlers, and what is done to workers by the parent, both with the database's clock.
//
// # States
//
// A Lab is opened, with an empty ledger; then workers run while the scenario breaks things; then the ledger is calm,
// the workers finish what is left; then the checks look for violations, and Conclude prints one line, and the first
// violations. A Trial has a function of the scenario for each step.
//
// # Failures
//
// A worker that ends by itself is a failure, and so is a queue that does not become empty. Conclude returns ErrBroken
// when anything was found; then the program ends with exit code 1.
package lab
