// Command find prints the directory with the binaries of a major version of PostgreSQL, for scripts:
//
//	PATH="$(go run ./internal/test/pgdev/find 17):$PATH" make test
//
// # Promise
//
// It takes an installed server; otherwise it downloads one, as package pgdev does for tests.
//
// # Failures
//
// If no server is available, the exit code is 1, and the standard error lists the remedies.
package main
