// Package pgtest is what the tests of packages with SQL share: a pool prepared as the engine prepares its
// connections, a migrated schema, and two questions about statements that no compiler answers. Example gives a pool to
// an Example, which has no testing.TB.
//
// Promise: Statements fails when a statement of a .sql file cannot be prepared, or is not used exactly
// once in the Go files beside it. Explain shows how a statement reaches its rows, from the plan that is
// run, so that a test can refuse a plan that reads a whole table.
//
// It is for tests only and stands on pgdev, which finds or starts the server.
package pgtest
