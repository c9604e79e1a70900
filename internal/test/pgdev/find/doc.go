// Command find prints the directory with the binaries of a major version of PostgreSQL, for scripts:
//
//	PATH="$(go run ./internal/test/pgdev/find 17):$PATH" make test
//
// # Promise
//
// An installed server is taken; otherwise one is downloaded, as package pgdev does for tests.
//
// # Failures
//
// If there is none, the exit code is 1, and the standard error lists what to do.
package main
