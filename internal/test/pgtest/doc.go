// Package pgtest has the helpers that tests of packages with SQL share: a pool prepared like the engine's
// connections, a migrated schema, and two checks of statements that no compiler makes. Example returns a pool for an
// Example, which has no testing.TB.
//
// Promise: Statements fails if a statement of a .sql file cannot be prepared, or is not used exactly once in the Go
// files beside it. Explain shows how a statement reaches its rows, from the plan that is run, so that a test can
// refuse a plan that reads a whole table.
//
// It is for tests only and uses pgdev, which finds or starts the server.
package pgtest
